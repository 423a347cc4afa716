// The page's state. Views read the engine's answer to the edits and nothing else; edits change only
// through these functions.
import {batch, computed, effect, signal} from '@preact/signals';

import {type Address, format, parse, type Shown} from './address';
import type {EngineEdit, Origin, View} from './answers';
import {
  areSame, edited, type Edits, type History, isEdited, noEdits, redone, startHistory, toEngine,
  undone, withChoice, withHidden, withNumber,
} from './edits';
import type {Answer, Engine, Problem} from './engine';
import {caseText, firstCase} from './lessons';

let engine: Engine;

export const caseName = signal(firstCase);
export const history = signal<History>(startHistory(noEdits));
export const shown = signal<Shown>({});
export const baseline = signal<Edits>(noEdits);
// Ghosts compare with the edit before, or with the baseline.
export const compares = signal<'last' | 'baseline'>('baseline');
export const linkTrouble = signal<string[]>([]);
export const keysOn = signal(true);
let unknown: Address['unknown'] = [];

export const edits = computed(() => history.value.now);

function ask(call: string, more: object = {}, of: Edits = edits.peek()): Answer {
  const name = caseName.peek();
  return engine.call({call, name, case: caseText(name) ?? '', edit: toEngine(of), ...more});
}

function answerOf<T>(answer: Answer): T | undefined {
  return answer.ok ? JSON.parse(answer.bytes) as T : undefined;
}

export type Outcome = {view: View; problems: Problem[]; isRefused: boolean};

// The last view that could be made stays while an edit is refused.
let lastGood: View | undefined;
let lastCase = '';

export const outcome = computed<Outcome | undefined>(() => {
  const name = caseName.value, {now, before} = history.value, {hand, mistake} = shown.value;
  const compared = compares.value === 'baseline' ? baseline.value : before;
  if (name !== lastCase) lastGood = undefined;
  lastCase = name;
  const more: {by_hand?: number; mistake?: string; before?: EngineEdit} = {};
  if (hand !== undefined) more.by_hand = hand;
  if (mistake !== undefined) more.mistake = mistake;
  if (!areSame(compared, now)) more.before = toEngine(compared);
  const answer = ask('view', more, now);
  if (answer.ok) {
    lastGood = JSON.parse(answer.bytes) as View;
    return {view: lastGood, problems: lastGood.refused, isRefused: false};
  }
  if (lastGood === undefined) {
    const bare = answerOf<View>(ask('view', {}, noEdits));
    if (bare === undefined) return undefined;
    lastGood = bare;
  }
  return {view: lastGood, problems: answer.problems, isRefused: true};
});

export const origin = computed<Origin | undefined>(() => {
  const sel = shown.value.sel;
  const found = /^(.*?)(?:\.h(\d+))?\.(\d+)\.(\d+)$/.exec(sel ?? '');
  void history.value;
  if (!found) return undefined;
  return answerOf<Origin>(ask('origin', {
    tap: found[1], head: found[2] === undefined ? -1 : Number(found[2]), row: Number(found[3]),
    column: Number(found[4]),
  }));
});

export const askEngine = <T>(call: string, more: object = {}): T | undefined =>
  answerOf<T>(ask(call, more));

// The command's bytes.
export const exported = (formatName: string): Answer => {
  const {mistake, hand} = shown.peek();
  const more: {format: string; mistake?: string; by_hand?: number} = {format: formatName};
  if (mistake !== undefined) more.mistake = mistake;
  else if (hand !== undefined) more.by_hand = hand;
  return ask('trace', more);
};

function change(next: Edits): void {
  batch(() => {
    history.value = edited(history.value, next);
    compares.value = 'last';
  });
}

// What the engine refuses is taken back at once, before anything is drawn; why is returned.
export function setNumber(place: string, text: string): string | undefined {
  const kept = history.peek(), compared = compares.peek();
  change(withNumber(edits.peek(), place, text));
  const now = outcome.peek();
  if (!now?.isRefused) return undefined;
  batch(() => {
    history.value = kept;
    compares.value = compared;
  });
  return now.problems.map(({what}) => what).join('; ');
}
export function hideKey(key: number, isHidden: boolean): void {
  change(withHidden(edits.peek(), key, isHidden));
}
export function choose(name: 'mask' | 'scale' | 'emptyRow', value: string | undefined): void {
  change(withChoice(edits.peek(), name, value));
}
// Pairs one by one: what is hidden now, by any rule, becomes a mask of its own.
export function setPairs(rows: readonly (readonly boolean[])[]): void {
  const text = rows.map((row) => row.map((isAllowed) => (isAllowed ? '1' : '0')).join('')).join('/');
  change({...withChoice(edits.peek(), 'mask', `rows:${text}`), hide: []});
}
export const replaceEdits = change;
export function reset(): void {
  change(noEdits);
}
export function undo(): void {
  batch(() => {
    history.value = undone(history.value);
    compares.value = 'last';
  });
}
export function redo(): void {
  batch(() => {
    history.value = redone(history.value);
    compares.value = 'last';
  });
}
export function compareWithBaseline(): void {
  compares.value = compares.value === 'baseline' ? 'last' : 'baseline';
}
export function setBaseline(): void {
  baseline.value = edits.peek();
}
export function show(change: {[K in keyof Shown]?: Shown[K] | undefined}): void {
  const next = {...shown.peek(), ...change};
  for (const key of Object.keys(next) as (keyof Shown)[]) if (next[key] === undefined) delete (next as Record<string, unknown>)[key];
  shown.value = next as Shown;
}

export function stepped(text: string, by: string): string | undefined {
  const answer = engine.call({call: 'step', text, by});
  return answerOf<{text: string}>(answer)?.text;
}

// A link's edits, one by one: what the engine refuses is left out and named.
function soundPart(wanted: Edits, wrong: string[]): Edits {
  if (!isEdited(wanted) || ask('view', {}, wanted).ok) return wanted;
  let sound: Edits = noEdits;
  const take = (next: Edits, name: string): void => {
    if (ask('view', {}, next).ok) sound = next;
    else wrong.push(name);
  };
  for (const [place, text] of wanted.set) take(withNumber(sound, place, text), `e=${place}:${text}`);
  for (const name of ['mask', 'scale', 'emptyRow'] as const)
    if (wanted[name] !== undefined) take(withChoice(sound, name, wanted[name]), `${name}=${wanted[name]}`);
  for (const key of wanted.hide) take(withHidden(sound, key, true), `hide=${key}`);
  return sound;
}

export const address = computed(() => format({
  page: 'learn', name: caseName.value, edits: edits.value, shown: shown.value, unknown,
}));

export function open(fragment: string): void {
  const {address: read, wrong} = parse(fragment, firstCase);
  batch(() => {
    unknown = read.unknown;
    const isKnown = caseText(read.name) !== undefined;
    if (!isKnown) wrong.push(`the case ${read.name}`);
    caseName.value = isKnown ? read.name : firstCase;
    history.value = startHistory(isKnown ? soundPart(read.edits, wrong) : noEdits);
    baseline.value = noEdits;
    compares.value = 'baseline';
    const {mistake, ...rest} = read.shown;
    const isMistake = mistake !== undefined && ask('view', {mistake}).ok;
    if (mistake !== undefined && !isMistake) wrong.push(`mistake=${mistake}`);
    shown.value = isMistake ? read.shown : rest;
    linkTrouble.value = wrong;
  });
}

export function start(loaded: Engine): void {
  engine = loaded;
  open(location.hash);
  effect(() => {
    const fragment = address.value;
    if (fragment !== location.hash) window.history.replaceState(null, '', fragment);
  });
  window.addEventListener('hashchange', () => {
    if (location.hash !== address.peek()) open(location.hash);
  });
}
