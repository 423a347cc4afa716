// Predict first: tick what will move, and the engine grades it.
import {signal} from '@preact/signals';

import type {Drill, Graded, View} from '../answers';
import {fromEngine} from '../edits';
import {askMore, caseName, edits, replaceEdits} from '../store';
import {inWords} from './more';

const ticked = signal<ReadonlySet<string>>(new Set());
const graded = signal<Graded | undefined>(undefined);
const trouble = signal('');
const asked = signal<{name: string; drill: number} | undefined>(undefined);

function ask(drill: number): void {
  asked.value = {name: caseName.peek(), drill};
  ticked.value = new Set();
  graded.value = undefined;
  trouble.value = '';
}

async function check(drill: number): Promise<void> {
  const of = asked.peek();
  const answer = await askMore('grade', {drill, ticked: [...ticked.peek()]});
  if (asked.peek() !== of) return;  // another was asked meanwhile
  if (answer.ok) graded.value = JSON.parse(answer.bytes) as Graded;
  trouble.value = answer.ok ? '' : inWords(answer.problems);
}

function tick(id: string, isOn: boolean): void {
  const next = new Set(ticked.peek());
  if (isOn) next.add(id);
  else next.delete(id);
  ticked.value = next;
}

function Ticks({view}: {view: View}) {
  const tables = view.document.sections.flatMap((section) => section.tables)
    .filter((table) => table.tap === 'weights' && table.rows.length > 0);
  const results = new Map(graded.value?.cells.map((cell) => [cell.id, cell]));
  return (
    <div class="tables">
      {tables.map((table) => (
        <div class="scroll" key={table.head}>
          <table aria-label={`weights that move ${table.leading}`}>
            {table.leading && <caption>{table.leading}</caption>}
            <thead><tr><td class="corner" />{table.columns_named.map((label) => <th scope="col" key={label}>{label}</th>)}</tr></thead>
            <tbody>
              {table.rows.map((row, n) => (
                <tr key={n}><th scope="row">{table.rows_named[n] ?? n}</th>
                  {row.map((cell) => {
                    const id = cell.id ?? '', result = results.get(id);
                    return (
                      <td key={id} class={result ? (result.right ? 'right' : 'wrong') : ''} data-testid={`graded-${id}`}>
                        <label class="tick">
                          <input type="checkbox" data-testid={`predict-${id}`} checked={ticked.value.has(id)}
                            disabled={graded.value !== undefined}
                            aria-label={`weight, query ${table.rows_named[n] ?? n}, key ${cell.id ? table.columns_named[row.indexOf(cell)] ?? '' : ''}, moves`}
                            onChange={(event) => tick(id, event.currentTarget.checked)} />
                          {cell.text}{result && <b>{result.right ? ' ✓' : result.moved ? ' ✗ moves' : ' ✗ stays'}</b>}
                        </label>
                      </td>);
                  })}
                </tr>))}
            </tbody>
          </table>
        </div>))}
    </div>
  );
}

function Question({view, drill}: {view: View; drill: Drill}) {
  const result = graded.value;
  return (
    <>
      <p><b>{drill.question}</b> Tick every weight that will move (of the case as it was given).</p>
      <Ticks view={view} />
      {!result && (
        <button type="button" data-testid="predict-check"
          onClick={() => void check(drill.drill)}>
          Check
        </button>)}
      {trouble.value && <p role="alert">{trouble.value}</p>}
      {result && (
        <div role="status" data-testid="predict-result" data-right={String(result.right)}>
          <p><b>{result.words}.</b> {result.answer}</p>
          {result.why.map((line) => <p key={line} data-testid="predict-why">{line}</p>)}
          <button type="button" data-testid="predict-apply"
            onClick={() => replaceEdits(fromEngine(edits.peek(), drill.edit))}>Make the change and look</button>{' '}
          <button type="button" onClick={() => ask(drill.drill)}>Try again</button>
        </div>)}
    </>
  );
}

export function PredictPanel({view}: {view: View}) {
  if (view.drills.length === 0) return null;
  const now = asked.value?.name === caseName.value ? asked.value.drill : undefined;
  const drill = view.drills.find((one) => one.drill === now);
  return (
    <section class="panel" aria-labelledby="predict-title">
      <h2 id="predict-title">Predict first</h2>
      <ul class="plain">
        {view.drills.map((one) => (
          <li key={one.drill}>
            <button type="button" data-testid={`drill-${one.drill}`} aria-pressed={one.drill === now}
              onClick={() => ask(one.drill)}>{one.question}</button>
          </li>))}
      </ul>
      {drill && <Question view={view} drill={drill} />}
    </section>
  );
}
