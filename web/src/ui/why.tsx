// Why the chosen number is what it is: made again from those it came from; of a sum of products a
// bar for each, and of a weight its whole way from q and k.
import {computed} from '@preact/signals';
import {useEffect} from 'preact/hooks';

import type {Derived, Explained} from '../answers';
import {larger} from '../everything';
import {placeOfSel} from '../ids';
import {askEngine, caseName, history, origin, outcome, pin, show, shown, traced, unpin} from '../store';
import {Formula, wantMath} from './formula';
import {placeWords} from './grid';
import {kFeedsWords, kFromWords} from './outline';

const kPairTaps = ['scores', 'scaled', 'capped', 'biased', 'masked', 'exp', 'weights'];

interface Why {
  derived: Derived | undefined;
  name: string;
  line: string | undefined;
  others: string[];
}

const why = computed<Why | undefined>(() => {
  const place = placeOfSel(traced.value ?? '');
  void history.value;
  void caseName.value;
  if (!place) return undefined;
  if (outcome.value?.view.inputs.includes(place.tap)) return undefined;  // given, not made
  const {tap, head, row, column} = place;
  const derived = askEngine<Derived | null>('derive', {tap, head, row, column}) ?? undefined;
  const explained = kPairTaps.includes(tap)
      ? askEngine<Explained>('why', {query: row, head: head < 0 ? 0 : head})?.rows[0] : undefined;
  const line = explained?.keys.find(({key}) => key === column)?.line;
  const others = explained?.keys.filter(({key}) => key !== column).map((entry) => entry.line) ?? [];
  return {derived, name: explained?.label ?? '', line, others};
});

// Bars are drawn from the middle: to the right what adds, to the left what takes away.
function Terms({terms}: {terms: Derived['terms']}) {
  if (terms.length < 2) return null;
  return (
    <div class="scroll">
      <table class="terms" aria-label="products that are added">
        <thead><tr><th scope="col" /><th scope="col">product</th><th scope="col" /><th scope="col">sum so far</th></tr></thead>
        <tbody>
          {terms.map(({label, left, right, product, running, share, exact}) => (
            <tr key={label}>
              <th scope="row">{label}</th>
              <td data-testid={`why-term-${label}`} data-exact={exact}>{left}·{right} = {product}</td>
              <td class="bar"><span style={`--x:${share}`} /></td>
              <td>{running}</td>
            </tr>))}
        </tbody>
      </table>
    </div>
  );
}

// "weight, query B, key A"; what is no longer there keeps its place in the address for a name.
function nameOf(sel: string): string {
  const place = placeOfSel(sel), sections = outcome.value?.view.document.sections ?? [];
  const table = place && sections.flatMap(({tables}) => tables).find(({tap, head}) => tap === place.tap && head === place.head);
  return table ? placeWords(table, place.row, place.column).join(', ') : sel;
}

// The chain of pinned cells, each one of those that the one before came from.
function Pinned() {
  const chain = shown.value.pin?.split(',') ?? [], names = chain.map(nameOf);
  const count = chain.length > 0 ? origin.value?.from.length ?? 0 : 0;
  return (
    <>
      {chain.length > 0 && (
        <nav aria-label="pinned" class="pins" data-testid="pinned">
          <ol>
            {chain.map((sel, n) => (
              <li key={sel}>
                <button type="button" data-testid={`pin-${n}`} aria-current={n === chain.length - 1 ? 'true' : undefined}
                  onClick={() => { if (n < chain.length - 1) pin(sel); }}>{names[n]}</button>
              </li>))}
          </ol>
          <button type="button" data-testid="unpin" title="Esc" onClick={unpin}>let go</button>
        </nav>)}
      <p class="visually-hidden" role="status" data-testid="pin-said">
        {chain.length > 0 ? `pinned: ${names.at(-1)}; made from ${count} ${count === 1 ? 'number' : 'numbers'}` : ''}
      </p>
      <p hidden id={kFromWords}>the {chain.length > 0 ? 'pinned' : 'chosen'} number is made from it</p>
      <p hidden id={kFeedsWords}>it is made from the {chain.length > 0 ? 'pinned' : 'chosen'} number</p>
    </>
  );
}

// Where it lies over the page, on narrow screens.
function close(): void {
  show({sel: undefined, pin: undefined});
}

export function WhyPanel() {
  const now = why.value, derived = now?.derived;
  useEffect(() => { if (now) wantMath(); }, [now === undefined]);
  return (
    <section class={now ? 'panel why open' : 'panel why'} aria-labelledby="why-title">
      {now && <button type="button" class="close" data-testid="why-close" onClick={close}>close</button>}
      <h2 id="why-title">Why?</h2>
      <Pinned />
      {!now?.line && !derived && <p class="soft">{now && !larger.value ? 'What explains it is being fetched …' : 'Choose a computed number: how it is made stands here.'}</p>}
      {derived && (
        <>
          {shown.value.pin === undefined && <p class="soft">Enter or a click pins it: what it came from stays outlined.</p>}
          <p><Formula text={derived.formula} /> <span class="soft">{derived.sentence}</span></p>
          {derived.lines.map((line) => <p key={line}><code data-testid="derived">{line}</code></p>)}
          <Terms terms={derived.terms} />
        </>)}
      {now?.line && (
        <>
          <p>From q and k: query {now.name}, key <code data-testid="why">{now.line}</code></p>
          {now.others.length > 0 && (
            <details><summary>the other keys of the row</summary>
              {now.others.map((line) => <p key={line}><code>{line}</code></p>)}
            </details>)}
        </>)}
    </section>
  );
}
