// The verdict, in the command's words, and the wrong numbers in their place.
import {useSignal} from '@preact/signals';

import {busy, exportedVerdict, type JudgedTable, makeProbe, options, read, roleOf, setOption, theCase, type Verdict, verdict} from '../doctor_state';
import {save} from './saving';

function Judged({table}: {table: JudgedTable}) {
  const {claim, columns, rows} = table;
  return (
    <div class="scroll" role="region" aria-label={`${claim}, as given`} tabIndex={0}>
      <table aria-label={claim}>
        <caption>{claim}, as given</caption>
        <thead><tr><td class="corner" />{columns.map((name) => <th scope="col" key={name}>{name}</th>)}<td class="corner" /></tr></thead>
        <tbody>
          {rows.map(({label, right, cells}, i) => (
            <tr key={label}>
              <th scope="row">{label}</th>
              {cells.map((cell, j) => (
                <td key={j} data-testid="doctor-cell" data-cell={`${claim}-${i}-${j}`} data-exact={cell.exact} data-wrong={String(cell.wrong)}
                  class={cell.wrong ? 'judged wrong' : 'judged'}
                  aria-label={`${claim}, row ${label}, column ${columns[j] ?? j}: ${cell.found}, ${cell.wrong ? `wrong, should be ${cell.right}` : 'right'}`}>
                  {cell.found}{cell.wrong && <small class="was">right {cell.right}</small>}
                </td>))}
              <td class="note">{right ? <span class="ok">✓ right</span> : <span class="bad">✗ wrong</span>}</td>
            </tr>))}
        </tbody>
      </table>
    </div>
  );
}

const kCausal: Record<string, string> = {
  yes: 'a causal mask', start: 'a causal mask, corner top left', end: 'a causal mask, corner bottom right',
};

// Which pairs were taken to be allowed: a verdict is no better than that.
function Assumed({now}: {now: Verdict}) {
  const {causal = '', window = '', key_lengths: keys = '', prefix = ''} = options.value;
  const name = theCase.value.replace(/^file:/, '');
  if (name !== '') return <p data-testid="doctor-assumed">Judged with the mask of {name}.</p>;
  const parts = [
    kCausal[causal], window.trim() && `the window ${window.trim()}`, keys.trim() && `the keys that count, ${keys.trim()}`,
    prefix.trim() && `the prefix ${prefix.trim()}`, read.value.tensors.some((tensor) => roleOf(tensor) === 'mask') && 'the mask that was given',
  ].filter(Boolean);
  if (parts.length > 0) return <p data-testid="doctor-assumed">Judged with {parts.join(' and ')}.</p>;
  const next = now.shape['q_len'] === now.shape['kv_len'] ? 'yes' : 'end';
  return (
    <p data-testid="doctor-assumed">Judged without a mask: every query may attend to every key.{' '}
      <button type="button" data-testid="judge-causal" onClick={() => void setOption('causal', next)}>judge with {kCausal[next]}</button></p>
  );
}

function probeAndShow(): void {
  void makeProbe('1').then(() => document.getElementById('probe-title')?.scrollIntoView({block: 'nearest'}));
}

const kWords = {right: 'Right', mistaken: 'Wrong, and the mistake is known', unexplained: 'Wrong'};

export function VerdictPanel() {
  const trouble = useSignal('');
  const now = verdict.value;
  if (!now) return null;
  const {diagnosis, lines, tables, command} = now;
  const write = async (format: 'json' | 'text', name: string, type: string) => {
    const answer = await exportedVerdict(format);
    trouble.value = answer && !answer.ok ? answer.problems.map(({what}) => what).join('; ') : '';
    if (answer?.ok) save(answer.bytes, name, type);
  };
  return (
    <section class={`panel verdict ${diagnosis.verdict}`} aria-labelledby="verdict-title" aria-live="polite">
      <h2 id="verdict-title" data-testid="doctor-verdict" data-verdict={diagnosis.verdict}
        data-causes={diagnosis.causes.map(({name}) => name).join(' ')}>{kWords[diagnosis.verdict]}</h2>
      <Assumed now={now} />
      <dl class="lines">
        {lines.map(({label, text}, n) => (
          <div key={n} data-testid={label === 'cause' ? 'doctor-cause' : 'doctor-line'} data-label={label}>
            <dt>{label}</dt><dd>{text}</dd>
          </div>))}
      </dl>
      <div class="tables">{tables.map((table) => <Judged key={table.claim} table={table} />)}</div>
      {command !== '' && <p>On the command line: <code data-testid="doctor-command">{command}</code></p>}
      <p class="buttons">
        {diagnosis.probe && <button type="button" data-testid="verdict-probe" disabled={busy.value !== ''} onClick={probeAndShow}>make a probe</button>}
        <button type="button" data-testid="export-json" onClick={() => void write('json', 'diagnosis.json', 'application/json')}>save as JSON</button>
        <button type="button" data-testid="export-text" onClick={() => void write('text', 'diagnosis.txt', 'text/plain')}>save as text</button>
      </p>
      {trouble.value && <p role="alert" class="bad">{trouble.value}</p>}
    </section>
  );
}
