// Who may attend to whom: a button for every pair, for every key and for every query.
import {useMemo} from 'preact/hooks';

import type {View} from '../answers';
import {maskId} from '../ids';
import {choose, edits, hideKey, setPairs} from '../store';

const kMostPairs = 24;  // beyond, buttons of 24 px no longer fit a screen

function toggled(rows: string[][], row: number, column?: number): boolean[][] {
  const isRowHidden = rows[row]!.every((reason) => reason !== '');
  return rows.map((reasons, i) => reasons.map((reason, j) => {
    const isAllowed = reason === '';
    if (i !== row) return isAllowed;
    return column === undefined ? isRowHidden : j === column ? !isAllowed : isAllowed;
  }));
}

// The kind and the padding of a mask as the engine names it: "causal+padding:2".
function partsOf(mask: string | undefined): {kind: string; padding: string} {
  if (mask === undefined) return {kind: 'given', padding: ''};
  const found = /^(?:([^+]*?)\+?)?(?:padding:(\d+))?$/.exec(mask);
  return {kind: found?.[1] || 'none', padding: found?.[2] ?? ''};
}
const join = (kind: string, padding: string): string | undefined =>
  kind === 'given' && padding === '' ? undefined
    : [kind === 'given' ? 'none' : kind, padding && `padding:${padding}`].filter(Boolean).join('+').replace(/^none\+/, '');

export function MaskChoice({view}: {view: View}) {
  const {kind, padding} = partsOf(edits.value.mask);
  const isCustom = kind.startsWith('rows:'), isKnown = ['given', 'none', 'causal'].includes(kind);
  const keys = view.labels.k;
  return (
    <>
      <label>mask{' '}
        <select data-testid="mask-mode" value={isCustom ? 'custom' : kind}
          onChange={(event) => choose('mask', join(event.currentTarget.value, padding))}>
          <option value="given">as given</option>
          <option value="none">none</option>
          <option value="causal">causal</option>
          {isCustom && <option value="custom">custom</option>}
          {!isCustom && !isKnown && <option value={kind}>{kind}</option>}
        </select>
      </label>
      {!isCustom && keys.length <= kMostPairs && (
        <label>padding{' '}
          <select data-testid="mask-padding" value={padding}
            onChange={(event) => choose('mask', join(kind, event.currentTarget.value))}>
            <option value="">none</option>
            {keys.map((_, n) => n > 0 && <option key={n} value={n}>{keys.slice(n).join(', ')}</option>)}
          </select>
        </label>
      )}
    </>
  );
}

type Pairs = Pick<View, 'mask' | 'labels'> & {hidden: readonly number[]};

// Hundreds of buttons, which most edits leave as they are.
export function MaskPanel({mask, labels, hidden}: Pairs) {
  return useMemo(() => <PairButtons mask={mask} labels={labels} hidden={hidden} />, [mask, labels, hidden]);
}

function PairButtons({mask, labels, hidden}: Pairs) {
  if (!mask || mask.rows.length > kMostPairs || (mask.rows[0]?.length ?? 0) > kMostPairs) return null;
  const {rows} = mask;
  const {q, k} = labels;
  const chips = [...new Set(rows.flat().flatMap((reason) => reason.split('+')).filter(Boolean))];
  return (
    <section class="panel" aria-labelledby="mask-title">
      <h2 id="mask-title">Mask</h2>
      <p class="soft">
        {chips.length === 0 ? 'Every query may attend to every key.' : 'Hidden by: '}
        {chips.map((chip) => <span class="chip" data-testid={`chip-${chip}`} key={chip}>{chip}</span>)}
      </p>
      <div class="scroll">
        <table class="pairs" aria-label="pairs that may attend">
          <thead><tr><td class="corner" />
            {rows[0]!.map((_, j) => (
              <th scope="col" key={j}>
                <button type="button" data-testid={`mask-key-${j}`} aria-pressed={hidden.includes(j)}
                  aria-label={`hide key ${k[j] ?? j} from every query`}
                  onClick={() => hideKey(j, !hidden.includes(j))}>{k[j] ?? j}</button>
              </th>))}
          </tr></thead>
          <tbody>
            {rows.map((reasons, i) => (
              <tr key={i}>
                <th scope="row">
                  <button type="button" data-testid={`mask-query-${i}`} aria-pressed={reasons.every((reason) => reason !== '')}
                    aria-label={`hide every key from query ${q[i] ?? i}`}
                    onClick={() => setPairs(toggled(rows, i))}>{q[i] ?? i}</button>
                </th>
                {reasons.map((reason, j) => (
                  <td key={j} class={reason === '' ? '' : 'hidden'}>
                    <button type="button" data-testid={maskId(i, j)} aria-pressed={reason === ''}
                      title={reason === '' ? 'may attend' : `hidden: ${reason}`}
                      aria-label={`query ${q[i] ?? i}, key ${k[j] ?? j}: ${reason === '' ? 'may attend' : `hidden by ${reason}`}`}
                      onClick={() => setPairs(toggled(rows, i, j))}>{reason === '' ? '✓' : '·'}</button>
                  </td>))}
              </tr>))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
