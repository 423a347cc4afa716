// The sheet's own controls: sizes, names, blocks of numbers, files. What it shows below is drawn as
// every case is.
import './pages.css';

import {computed, signal, useSignal} from '@preact/signals';
import {useEffect, useLayoutEffect} from 'preact/hooks';

import {kBlankSheet} from '../address';
import {asBase64} from '../bytes';
import {placeOf, toEngine} from '../edits';
import type {Answer, Problem} from '../engine';
import {Lane} from '../full';
import {caseNames, fetchedCase} from '../lessons';
import {address, edits, isTooLong, outcome, replaceSheet} from '../store';
import {takeBlock} from './pasting';
import {save} from './saving';

interface Sheet {
  case: string;
  kind: 'X' | 'qkv';
  tokens: string;
  keys: string;
  sizes: Record<string, string>;
}

const lane = new Lane(), following = new Lane();
const form = signal<Sheet | undefined>(undefined);
const problems = signal<Problem[]>([]);
const code = signal('');
const said = signal('');
const busy = signal(0);  // how many answers and files are being waited for

// The sheet as it is, its typed numbers in it, changed.
const ask = (change: object, by = lane): Promise<Answer | undefined> => {
  const {base, set} = edits.peek();
  return by.call({call: 'sheet', case: base ?? kBlankSheet, edit: {set: toEngine({set, hide: []}).set ?? []}, ...change});
};

function refuse(found: Problem[], name: string): void {
  problems.value = found;
  code.value = found.some(({where}) => where === 'engine-not-loaded') ? 'engine-not-loaded' : name;
}

function waited<T>(work: Promise<T>): Promise<T> {
  busy.value++;
  return work.finally(() => { busy.value--; });
}

async function change(what: object, words: string, name = 'sheet-refused'): Promise<void> {
  const answer = await waited(ask(what));
  if (answer === undefined) return;
  if (!answer.ok) return refuse(answer.problems, name);
  problems.value = [];
  said.value = words;
  replaceSheet((JSON.parse(answer.bytes) as Sheet).case);
}

// What the form shows follows the sheet, undo included.
async function follow(): Promise<void> {
  const answer = await ask({}, following);
  if (answer === undefined) return;
  form.value = answer.ok ? JSON.parse(answer.bytes) as Sheet : undefined;
  if (!answer.ok && answer.problems.some(({where}) => where === 'engine-not-loaded')) refuse(answer.problems, '');
}

const current = computed(() => JSON.stringify([edits.value.base, edits.value.set]));

const kSizes: Record<Sheet['kind'], [name: string, label: string][]> = {
  X: [['rows', 'how many tokens'], ['d_model', 'columns of X'], ['width', 'columns of W_Q, W_K'], ['d_v', 'columns of W_V'], ['heads', 'heads']],
  qkv: [['rows', 'how many queries'], ['key_rows', 'how many keys'], ['width', 'columns of q, k'], ['d_v', 'columns of v']],
};

function Sizes({now}: {now: Sheet}) {
  return (
    <div class="options">
      <label>start from{' '}
        <select data-testid="sheet-kind" value={now.kind}
          onChange={(event) => void change({kind: event.currentTarget.value}, 'the same numbers, laid out anew')}>
          <option value="X">X with W_Q, W_K, W_V</option>
          <option value="qkv">q, k, v themselves</option>
        </select>
      </label>
      <label>{now.kind === 'X' ? 'tokens' : 'names of queries'}{' '}
        <input data-testid="sheet-tokens" size={16} value={now.tokens} autocomplete="off"
          onChange={(event) => void change({tokens: event.currentTarget.value}, 'tokens changed')} />
      </label>
      {now.kind === 'qkv' && (
        <label>names of keys{' '}
          <input data-testid="sheet-keys" size={16} value={now.keys} autocomplete="off"
            onChange={(event) => void change({keys: event.currentTarget.value}, 'keys changed')} />
        </label>)}
      {kSizes[now.kind].map(([name, label]) => (
        <label key={name}>{label}{' '}
          <input type="number" min={1} max={name === 'heads' ? 4 : 16} data-testid={`sheet-${name}`} value={now.sizes[name] ?? ''}
            onChange={(event) => void change({sizes: {[name]: event.currentTarget.value}}, `${label}: ${event.currentTarget.value}`)} />
        </label>))}
    </div>
  );
}

async function open(files: readonly File[], matrix: string): Promise<void> {
  const file = files[0];
  if (!file) return;
  if (file.size > 1 << 20) {
    refuse([{where: file.name, what: 'a sheet reads files of at most 1 MiB; larger tensors are the doctor’s, or the command’s'}], 'too-large');
    return;
  }
  const isBytes = /\.npy$/i.test(file.name);
  const base64 = isBytes ? await asBase64(file) : undefined;
  const text = isBytes ? '' : await file.text();
  if (!isBytes && /^\s*(?:\{|\/[/*])/.test(text)) return openCase(file.name, text);
  const source = isBytes ? {name: file.name, base64} : {name: file.name, text};
  await change({paste: {matrix, sources: [source]}}, `${matrix} from ${file.name}`, isBytes ? 'file-broken' : 'numbers-unclear');
}

// Any case can be shown and its numbers changed; what it has beyond a sheet keeps its sizes.
async function openCase(name: string, given: string | undefined | Promise<string | undefined>): Promise<void> {
  const text = await given;
  if (text === undefined) return refuse([{where: name, what: 'cannot be fetched now'}], 'case-broken');
  const answer = await lane.call({call: 'view', name, case: text});
  if (answer === undefined) return;
  if (!answer.ok) return refuse(answer.problems, 'case-broken');
  problems.value = [];
  said.value = `${name} opened`;
  replaceSheet(text);
}

function Fill() {
  const matrices = outcome.value?.view.inputs ?? [];
  const matrix = useSignal(''), text = useSignal('');
  const now = matrices.includes(matrix.value) ? matrix.value : matrices[0] ?? '';
  const isOver = useSignal(false);
  return (
    <div class={isOver.value ? 'drop over' : 'drop'} data-testid="sheet-drop"
      onDragOver={(event) => { event.preventDefault(); isOver.value = true; }}
      onDragLeave={() => { isOver.value = false; }}
      onDrop={(event) => {
        event.preventDefault();
        isOver.value = false;
        void waited(open([...event.dataTransfer?.files ?? []], now));
      }}>
      <p>
        <label>all of{' '}
          <select data-testid="sheet-matrix" value={now} onChange={(event) => { matrix.value = event.currentTarget.value; }}>
            {matrices.map((name) => <option key={name} value={name}>{name}</option>)}
          </select>
        </label>{' '}
        <label>from a file (.csv, .txt, .npy; a case, .json, opens whole){' '}
          <input type="file" data-testid="sheet-file" accept=".csv,.tsv,.txt,.json,.npy"
            onChange={(event) => {
              void waited(open([...event.currentTarget.files ?? []], now));
              event.currentTarget.value = '';
            }} />
        </label>
      </p>
      <textarea rows={3} data-testid="sheet-paste" spellcheck={false} aria-label={`numbers for ${now}`}
        placeholder="or paste: cells of a spreadsheet, CSV, JSON or Python lists" value={text.value}
        onInput={(event) => { text.value = event.currentTarget.value; }} />
      <p>
        <button type="button" data-testid="sheet-fill" disabled={text.value.trim() === ''}
          onClick={() => void change({paste: {matrix: now, sources: [{name: 'pasted', text: text.value}]}}, `${now} filled`, 'numbers-unclear')}>fill {now}</button>{' '}
        <span class="soft">A block pasted onto a cell below fills from there on.</span>
      </p>
    </div>
  );
}

function Keep() {
  return (
    <p class="buttons">
      <button type="button" data-testid="sheet-save"
        onClick={() => void ask({}, following).then((answer) => {
          if (answer?.ok) save((JSON.parse(answer.bytes) as Sheet).case, 'sheet.json', 'application/json');
          else save(edits.peek().base ?? kBlankSheet, 'sheet.json', 'application/json');
        })}>save as a case</button>
      <button type="button" data-testid="sheet-blank" onClick={() => replaceSheet(kBlankSheet)}>blank sheet</button>
      <label>start from{' '}
        <select data-testid="sheet-from" value="" onChange={(event) => void waited(openCase(event.currentTarget.value, fetchedCase(event.currentTarget.value)))}>
          <option value="">a worked example …</option>
          {caseNames().map((name) => <option key={name} value={name}>{name}</option>)}
        </select>
      </label>
      <span class="soft" data-testid="sheet-kept" data-kept={isTooLong.value ? 'file' : 'address'}>
        {isTooLong.value ? 'Too long for the address: save it as a case to keep or pass it on.'
          : `The address holds this whole sheet, ${address.value.length} characters.`}
      </span>
    </p>
  );
}

export default function SheetPanel() {
  useLayoutEffect(() => {
    takeBlock.value = (place, text) => {
      const {matrix, at} = placeOf(place)!;
      void change({paste: {matrix, at, sources: [{name: 'pasted', text}]}}, `block pasted into ${matrix}`, 'numbers-unclear');
    };
    return () => { takeBlock.value = undefined; };
  }, []);
  useEffect(() => { void follow(); }, [current.value]);
  return (
    <section class="panel sheet" aria-label="the sheet" data-testid="sheet" aria-busy={busy.value > 0}>
      {form.value && <Sizes now={form.value} />}
      <Fill />
      <Keep />
      <p class="visually-hidden" role="status" data-testid="sheet-said">{said.value}</p>
      {problems.value.length > 0 && (
        <div role="alert" class="banner bad" data-testid="banner-sheet" data-code={code.value}>
          {problems.value.map(({where, what}) => <p key={where + what}><b>{where}</b> {what}</p>)}
          <button type="button" onClick={() => { problems.value = []; }}>Close</button>
        </div>)}
    </section>
  );
}
