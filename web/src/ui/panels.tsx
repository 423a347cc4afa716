// What stands beside the numbers: why a weight is what it is, mistakes, predictions, by hand.
import {computed, signal, useSignal} from '@preact/signals';
import {useEffect} from 'preact/hooks';

import type {Drill, Explained, Graded, View} from '../answers';
import {fromEngine} from '../edits';
import {askEngine, caseName, edits, history, replaceEdits, show, shown} from '../store';
import {TableView} from './table';

const kPairTaps = ['scores', 'scaled', 'capped', 'biased', 'masked', 'exp', 'weights'];

interface Why {
  name: string;
  line: string;
  others: string[];
}

// The derivation of the selected pair's weight; of an output its sum.
const why = computed<Why | undefined>(() => {
  const found = /^(.*?)(?:\.h(\d+))?\.(\d+)\.(\d+)$/.exec(shown.value.sel ?? '');
  void history.value;
  void caseName.value;
  if (!found || !kPairTaps.includes(found[1]!)) return undefined;
  const query = Number(found[3]), key = Number(found[4]), head = Number(found[2] ?? '0');
  const row = askEngine<Explained>('why', {query, head})?.rows[0];
  const line = row?.keys.find((entry) => entry.key === key)?.line;
  if (!row || line === undefined) return undefined;
  return {
    name: row.label, line, others: row.keys.filter((entry) => entry.key !== key).map((entry) => entry.line),
  };
});

export function WhyPanel() {
  const now = why.value;
  return (
    <section class="panel why" aria-labelledby="why-title">
      <h2 id="why-title">Why?</h2>
      {now === undefined
        ? <p class="soft">Choose a score or a weight: its derivation stands here.</p>
        : (
          <>
            <p>query {now.name}, key <code data-testid="why">{now.line}</code></p>
            {now.others.length > 0 && (
              <details><summary>the other keys of the row</summary>
                {now.others.map((line) => <p key={line}><code>{line}</code></p>)}
              </details>)}
          </>)}
    </section>
  );
}

export function ByHandPanel({view}: {view: View}) {
  if (!view.by_hand) return null;
  return (
    <section class="panel" aria-labelledby="hand-title">
      <h2 id="hand-title">By hand, beside exact</h2>
      <p class="soft">Every intermediate is rounded before the next step uses it, as on paper. Cells that drift show the exact number below.</p>
      <pre data-testid="by-hand" tabIndex={0}>{view.by_hand.join('\n')}</pre>
    </section>
  );
}

interface Listed {
  mistakes: {id: string; title: string; hidden_because: string}[];
}

export function MistakesPanel() {
  const list = useSignal<Listed | undefined>(undefined);
  const isOpen = useSignal(shown.peek().mistake !== undefined);
  const now = history.value.now, name = caseName.value;
  useEffect(() => {
    list.value = isOpen.value ? askEngine<Listed>('mistakes') : undefined;
  }, [isOpen.value, now, name]);
  const chosen = shown.value.mistake;
  const mistakes = list.value?.mistakes ?? [];
  const bare = chosen?.split(':')[0];
  return (
    <section class="panel" aria-labelledby="mistakes-title">
      <h2 id="mistakes-title">Mistakes</h2>
      {!isOpen.value && (
        <button type="button" data-testid="mistakes-open" onClick={() => { isOpen.value = true; }}>
          What goes wrong here, and how it looks
        </button>)}
      {isOpen.value && (
        <fieldset class="radios"><legend>Make a mistake on these numbers</legend>
          <label><input type="radio" name="mistake" checked={chosen === undefined}
            onChange={() => show({mistake: undefined})} /> none</label>
          {mistakes.map(({id, title, hidden_because}) => (
            <label key={id} title={hidden_because || undefined}>
              <input type="radio" name="mistake" data-testid={`mistake-${id}`} checked={bare === id}
                onChange={() => show({mistake: id})} /> {title}
              {hidden_because && <small class="soft"> (can't show here)</small>}
            </label>))}
        </fieldset>)}
    </section>
  );
}

// The wrong run, and the right one beside it.
export function MistakeShown({view}: {view: View}) {
  const mistake = view.mistake;
  if (!mistake) return null;
  const {sections} = mistake.document;
  return (
    <section class="panel mistake" aria-labelledby="mistake-title" data-testid="mistake-shown">
      <h2 id="mistake-title">A mistake: {mistake.title}</h2>
      <p>{mistake.done}</p>
      {mistake.stops_because && <p class="bad">Stops: {mistake.stops_because}</p>}
      <div class="tables">
        {sections.map((section, n) => section.tables.map((table, t) => (
          <TableView key={`${n}-${t}`} table={table} compares="right"
            title={[table.tap, table.leading, n % 2 === 0 ? 'wrong' : 'right'].filter(Boolean).join(', ')}
            prefix={n % 2 === 0 ? 'wrong-' : 'right-'} />)))}
      </div>
      <dl>
        <dt>tell-tale</dt><dd>{mistake.tell_tale}</dd>
        {mistake.hidden_because && <><dt>hidden here</dt><dd>{mistake.hidden_because}</dd></>}
        <dt>look for</dt><dd><code>{mistake.cause}</code></dd>
        <dt>fix</dt><dd>{mistake.fix}: <code>{mistake.fix_code}</code></dd>
      </dl>
    </section>
  );
}

const ticked = signal<ReadonlySet<string>>(new Set());
const graded = signal<Graded | undefined>(undefined);
const asked = signal<{name: string; drill: number} | undefined>(undefined);

function ask(drill: number): void {
  asked.value = {name: caseName.peek(), drill};
  ticked.value = new Set();
  graded.value = undefined;
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
          onClick={() => { graded.value = askEngine<Graded>('grade', {drill: drill.drill, ticked: [...ticked.value]}); }}>
          Check
        </button>)}
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

