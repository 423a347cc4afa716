// Why the chosen number is what it is: made again from those it came from; of a sum of products a
// bar for each, and of a weight its whole way from q and k.
import {computed} from '@preact/signals';

import type {Derived, Explained} from '../answers';
import {placeOfSel} from '../ids';
import {askEngine, caseName, history, shown} from '../store';

const kPairTaps = ['scores', 'scaled', 'capped', 'biased', 'masked', 'exp', 'weights'];

interface Why {
  derived: Derived | undefined;
  name: string;
  line: string | undefined;
  others: string[];
}

const why = computed<Why | undefined>(() => {
  const place = placeOfSel(shown.value.sel ?? '');
  void history.value;
  void caseName.value;
  if (!place) return undefined;
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

export function WhyPanel() {
  const now = why.value, derived = now?.derived;
  return (
    <section class="panel why" aria-labelledby="why-title">
      <h2 id="why-title">Why?</h2>
      {!now?.line && !derived && <p class="soft">Choose a computed number: how it is made stands here.</p>}
      {derived && (
        <>
          <p>{derived.formula} <span class="soft">{derived.sentence}</span></p>
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
