// What can be taken along: the command's bytes as files, a picture, one tensor, the case as a command
// or a program.
import {useSignal} from '@preact/signals';

import type {Problem} from '../engine';
import {npyOf, storable} from '../npy';
import {pngOf} from '../picture';
import {asCode, askMore, caseName, exported, outcome, shown} from '../store';
import {inWords} from './more';
import {save} from './saving';
import {copied} from './sharing';

const kFormats = [
  ['json', 'JSON', 'application/json', 'json'], ['csv', 'CSV', 'text/csv', 'csv'],
  ['md', 'Markdown', 'text/markdown', 'md'], ['latex', 'LaTeX', 'application/x-tex', 'tex'],
  ['html', 'HTML', 'text/html', 'html'], ['svg', 'SVG', 'image/svg+xml', 'svg'],
  ['text', 'Text', 'text/plain', 'txt'],
] as const;

// Writes a file, or says why there is none.
type Write = () => Promise<Problem[]>;

async function writeFormat(format: string, type: string, ending: string): Promise<Problem[]> {
  const answer = await exported(format);
  if (!answer.ok) return answer.problems;
  save(answer.bytes, `${caseName.peek()}.${ending}`, type);
  return [];
}

async function writePicture(): Promise<Problem[]> {
  const answer = await exported('svg');
  if (!answer.ok) return answer.problems;
  const png = await pngOf(answer.bytes);
  if (!png) return [{where: 'PNG', what: 'the figure is larger than this browser can paint; take the SVG'}];
  save(png, `${caseName.peek()}.png`, 'image/png');
  return [];
}

async function writeTensor(tap: string): Promise<Problem[]> {
  const view = outcome.peek()?.view, table = view && storable(view).find((one) => one.tap === tap);
  if (!table) return [{where: tap, what: 'there is no such matrix now'}];
  const answer = await askMore('trace', {format: 'json'});
  if (!answer.ok) return answer.problems;
  const bytes = npyOf(answer.bytes, table);
  if (!bytes) return [{where: tap, what: `take it with the command: glasshead trace … --steps ${tap} -o ${tap}.npy`}];
  save(bytes as Uint8Array<ArrayBuffer>, `${caseName.peek()}-${tap}.npy`, 'application/octet-stream');
  return [];
}

function Tensor({write}: {write: (what: Write) => void}) {
  const chosen = useSignal('out'), view = outcome.value?.view;
  const taps = view ? storable(view).map(({tap}) => tap) : [];
  const now = taps.includes(chosen.value) ? chosen.value : taps.at(-1) ?? '';
  if (now === '') return null;
  const isBeside = shown.value.hand !== undefined || shown.value.mistake !== undefined;
  return (
    <p>
      <label>one matrix{' '}
        <select data-testid="export-tensor" value={now} onChange={(event) => { chosen.value = event.currentTarget.value; }}>
          {taps.map((tap) => <option key={tap} value={tap}>{tap}</option>)}
        </select>
      </label>{' '}
      <button type="button" data-testid="export-npy" onClick={() => write(() => writeTensor(now))}>.npy</button>{' '}
      {isBeside && <span class="soft">of the exact run</span>}
    </p>
  );
}

export function Exports() {
  const trouble = useSignal('');
  const write = (what: Write) => void what().catch((error: unknown) => [{where: 'export', what: String(error)}])
      .then((problems) => { trouble.value = inWords(problems); });
  return (
    <div>
      {kFormats.map(([format, name, type, ending]) => (
        <button type="button" key={format} data-testid={`export-${format}`}
          onClick={() => write(() => writeFormat(format, type, ending))}>{name}</button>))}
      <button type="button" data-testid="export-png" onClick={() => write(writePicture)}>PNG</button>
      <Tensor write={write} />
      {trouble.value && <p role="alert" class="bad">{trouble.value}</p>}
    </div>
  );
}

const kLanguages = [['command', 'command'], ['numpy', 'NumPy'], ['pytorch', 'PyTorch'], ['cpp', 'C++']] as const;

// The case as a line for a terminal, or as a program; also shown, to be read before it is run.
export function Copies() {
  const text = useSignal(''), said = useSignal('');
  const write = async (language: string) => {
    const answer = await asCode(language);
    text.value = answer.ok ? (JSON.parse(answer.bytes) as {text: string}).text : '';
    said.value = !answer.ok ? inWords(answer.problems)
        : await copied(text.value) ? 'copied:' : 'to copy:';
  };
  return (
    <div>
      {kLanguages.map(([language, name]) => (
        <button type="button" key={language} data-testid={`copy-${language}`} onClick={() => void write(language)}>{name}</button>))}
      <p role="status">{said.value}</p>
      {text.value && <pre data-testid="copied" tabIndex={0}>{text.value}</pre>}
    </div>
  );
}
