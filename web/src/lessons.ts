// The cases by lesson, and their texts, each fetched when it is first opened. A case is read by the
// engine; here it is only carried.
import {embeddedCase} from './embedded';

type Fetch = () => Promise<string>;

const files = import.meta.glob<string>('../../cases/*.json', {query: '?raw', import: 'default'});

const texts = new Map<string, string | Fetch>(Object.entries(files)
    .map(([path, text]) => [path.replace(/^.*\/(.*)\.json$/, '$1'), text]));

if (embeddedCase) texts.set(embeddedCase.name, embeddedCase.text);

// Cases of the server's come before bundled ones of the same name.
export function addCases(cases: readonly (readonly [name: string, text: string])[]): void {
  for (const [name, text] of cases) texts.set(name, text);
}

export const caseNames = (): string[] => [...texts.keys()].sort();

// Of a case that is here: fetched before, or come with the page.
export function caseText(name: string): string | undefined {
  const text = texts.get(name);
  return typeof text === 'string' ? text : undefined;
}

// Fetched where it isn't here yet. Undefined: there is none of that name, or it can't be had now.
export async function fetchedCase(name: string): Promise<string | undefined> {
  const text = texts.get(name);
  try {
    if (typeof text === 'function') texts.set(name, await text());
  } catch {
    // asked for again the next time
  }
  return caseText(name);
}

export interface Lesson {
  title: string;
  cases: string[];
}

export const firstCase = embeddedCase?.name ?? 'three-tokens';

const kLessons: Lesson[] = [
  {title: 'Three tokens', cases: ['three-tokens', 'three-tokens-causal', 'three-tokens-dk4', 'three-tokens-dk8', 'separating', 'separating-causal']},
  {title: 'Cat chases mouse', cases: ['cat-chases-mouse', 'cat-chases-mouse-encoder', 'cat-chases-mouse-next', 'analogy']},
  {title: 'One query', cases: ['one-query', 'one-query-hide3']},
  {title: 'Cat eats fish', cases: ['cat-eats-fish', 'it-animal', 'the-cat-sat', 'softmax-five']},
  {title: 'Masks', cases: ['three-tokens-padding', 'empty-row']},
  {title: 'Scale and saturation', cases: ['dot-variance', 'saturated-512', 'no-softmax']},
  {title: 'Heads', cases: ['two-heads', 'grouped-heads', 'one-block']},
  {title: 'Cross-attention and cache', cases: ['cross', 'cache-steps']},
];

// Every case is in a lesson; one that nobody sorted in stands under "More".
export function lessons(): Lesson[] {
  const sorted = new Set(kLessons.flatMap((lesson) => lesson.cases));
  const more = caseNames().filter((name) => !sorted.has(name));
  const known = kLessons.map(({title, cases}) => ({title, cases: cases.filter((name) => texts.has(name))}));
  return more.length > 0 ? [...known, {title: 'More', cases: more}] : known;
}
