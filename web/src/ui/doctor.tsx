// The doctor: what somebody's program gave beside what it should have given.
import './pages.css';

import {effect, untracked, useSignal} from '@preact/signals';
import {useEffect, useLayoutEffect} from 'preact/hooks';

import {
  addFiles, addText, busy, chooseCase, chooseRole, clearAll, code, hints, type Item, items, judging, keeping, keyOf, missing, needs,
  openLink, options, problems, read, remove, roleOf, setJudging, setOption, theCase, type Tensor,
} from '../doctor_state';
import {kRoles} from '../doctor_address';
import {caseNames} from '../lessons';
import {doctorLink, page, write} from '../store';
import {LinkTrouble} from './banner';
import {ProbePanel} from './doctor_probe';
import {VerdictPanel} from './doctor_verdict';
import {Share} from './sharing';

function Drop() {
  const isOver = useSignal(false);
  const take = (files: FileList | null | undefined) => { if (files?.length) void addFiles([...files]); };
  return (
    <div class={isOver.value ? 'drop over' : 'drop'} data-testid="doctor-drop"
      onDragOver={(event) => { event.preventDefault(); isOver.value = true; }}
      onDragLeave={() => { isOver.value = false; }}
      onDrop={(event) => {
        event.preventDefault();
        isOver.value = false;
        take(event.dataTransfer?.files);
      }}>
      <label>
        Drop files here, or choose them: .npy, .safetensors, a case (.json), numbers (.csv, .txt){' '}
        <input type="file" multiple data-testid="doctor-files" accept=".npy,.safetensors,.json,.csv,.tsv,.txt"
          onChange={(event) => {
            take(event.currentTarget.files);
            event.currentTarget.value = '';
          }} />
      </label>
    </div>
  );
}

function Paste() {
  const text = useSignal(''), role = useSignal('');
  return (
    <details class="paste" open>
      <summary>Paste numbers</summary>
      <textarea rows={4} data-testid="doctor-paste" aria-label="numbers from a spreadsheet, JSON or Python" spellcheck={false}
        placeholder={'1 0 0; .5 .5 0; .25 .25 .5\nor cells of a spreadsheet, JSON lists, what print() shows'}
        value={text.value} onInput={(event) => { text.value = event.currentTarget.value; }} />
      <p>
        <label>they are{' '}
          <RoleChoice id="paste-role" value={role.value} none="to be guessed" onChoose={(next) => { role.value = next; }} />
        </label>{' '}
        <button type="button" data-testid="doctor-paste-add" disabled={text.value.trim() === ''}
          onClick={() => void addText(text.value, role.value)}>Take these numbers</button>
      </p>
    </details>
  );
}

function RoleChoice({id, value, none, label, onChoose}: {
  id: string; value: string; none: string; label?: string; onChoose: (role: string) => void;
}) {
  return (
    <select data-testid={id} value={value} aria-label={label} onChange={(event) => onChoose(event.currentTarget.value)}>
      <option value="">{none}</option>
      {kRoles.map((role) => <option key={role} value={role}>{role}</option>)}
    </select>
  );
}

const nameOf = (tensor: Tensor) => (tensor.name === '' ? tensor.source_name : `${tensor.source_name}, ${tensor.name}`);

function Given() {
  const {tensors} = read.value;
  if (items.value.length === 0) return null;
  return (
    <>
      {tensors.length > 0 && (
        <div class="scroll">
          <table class="given" aria-label="what was given">
            <thead><tr><th scope="col">what</th><th scope="col">shape</th><th scope="col">type</th><th scope="col">is</th></tr></thead>
            <tbody>
              {tensors.map((tensor) => (
                <tr key={keyOf(tensor)}>
                  <th scope="row">{nameOf(tensor)}</th>
                  <td>{tensor.shape}</td>
                  <td>{tensor.type}</td>
                  <td><RoleChoice id={`role-${keyOf(tensor)}`} label={`what ${nameOf(tensor)} is`} none="not used" value={roleOf(tensor)}
                    onChoose={(role) => void chooseRole(tensor, role)} /></td>
                </tr>))}
            </tbody>
          </table>
        </div>)}
      <p class="items">
        {items.value.map((item: Item) => (
          <button type="button" key={item.id} data-testid={`remove-${item.name}`} onClick={() => void remove(item)}
            aria-label={`remove ${item.name}`}>{item.name} ✕</button>))}
        <button type="button" data-testid="doctor-clear" onClick={() => void clearAll()}>start again</button>
      </p>
    </>
  );
}

function CaseChoice() {
  const isFile = theCase.value.startsWith('file:');
  return (
    <p>
      <label>of the worked example{' '}
        <select data-testid="doctor-case" value={theCase.value} onChange={(event) => void chooseCase(event.currentTarget.value)}>
          <option value="">none: q, k and v are given</option>
          {isFile && <option value={theCase.value}>{theCase.value.slice('file:'.length)}</option>}
          {caseNames().map((name) => <option key={name} value={name}>{name}</option>)}
        </select>
      </label>
    </p>
  );
}

function Typed({name, label, hint, values, onSet}: {
  name: string; label: string; hint: string; values: Record<string, string>; onSet: (key: string, text: string) => void;
}) {
  return (
    <label>{label}{' '}
      <input data-testid={`option-${name}`} size={8} autocomplete="off" placeholder={hint} value={values[name] ?? ''}
        onChange={(event) => onSet(name, event.currentTarget.value)} />
    </label>
  );
}

const kTyped: [name: string, label: string, hint: string][] = [
  ['scale', 'scale', '1/√d_k'], ['heads', 'heads side by side in the last axis', 'none'], ['softcap', 'softcap', 'off'],
  ['window', 'window: left,right', 'none'], ['key_lengths', 'keys that count', 'all'], ['prefix', 'prefix', 'none'],
  ['query_start', 'query row 0 stands at', 'key 0'], ['alibi', 'ALiBi slopes', 'none'], ['rope_base', 'rotary base', '10000'],
];

function Options() {
  const set = (key: string, text: string) => void setOption(key, text);
  const judge = (key: string, text: string) => void setJudging(key, text);
  return (
    <>
      {theCase.value === '' && (
        <fieldset class="options">
          <legend>What they believe to compute</legend>
          <label>mask{' '}
            <select data-testid="option-causal" value={options.value['causal'] ?? ''} onChange={(event) => set('causal', event.currentTarget.value)}>
              <option value="">none</option>
              <option value="yes">causal, as many queries as keys</option>
              <option value="start">causal, corner top left</option>
              <option value="end">causal, corner bottom right</option>
            </select>
          </label>
          {kTyped.map(([name, label, hint]) => (
            <Typed key={name} name={name} label={label} hint={hint} values={options.value} onSet={set} />))}
          <label>rotary positions{' '}
            <select data-testid="option-rope" value={options.value['rope'] ?? ''} onChange={(event) => set('rope', event.currentTarget.value)}>
              <option value="">already applied, or none</option>
              <option value="halves">they turn q and k: halves</option>
              <option value="adjacent">they turn q and k: adjacent pairs</option>
            </select>
          </label>
        </fieldset>)}
      <fieldset class="options">
        <legend>How exact their numbers are</legend>
        <label>computed in{' '}
          <select data-testid="option-dtype" value={judging.value['dtype'] ?? ''} onChange={(event) => judge('dtype', event.currentTarget.value)}>
            <option value="">the narrowest type given</option>
            {['f64', 'f32', 'bf16', 'f16'].map((name) => <option key={name} value={name}>{name}</option>)}
          </select>
        </label>
        <Typed name="decimals" label="rounded to decimals" hint="as typed" values={judging.value} onSet={judge} />
        <label>
          <input type="checkbox" data-testid="option-pairs" checked={judging.value['pairs'] !== 'no'}
            onChange={(event) => judge('pairs', event.currentTarget.checked ? '' : 'no')} /> look for two mistakes at once
        </label>
      </fieldset>
    </>
  );
}

// Everything that stopped a verdict, each with its code.
function Troubles() {
  const own = items.value.flatMap(({trouble}) => (trouble ? [{...trouble, source_name: trouble.name}] : []));
  const all = [...own, ...read.value.troubles];
  return (
    <>
      {all.map(({code: name, source_name, what}) => (
        <p role="alert" class="banner bad" key={`${source_name} ${what}`} data-testid="banner-error" data-code={name}>
          <b>{source_name}</b> {what}
        </p>))}
      {problems.value.length > 0 && (
        <div role="alert" class="banner bad" data-testid="banner-error" data-code={code.value}>
          {problems.value.map(({where, what}) => <p key={where + what}><b>{where}</b> {what}</p>)}
        </div>)}
    </>
  );
}

const listed = (names: readonly string[]) => names.join(', ');

function Needs() {
  if (needs.value.length === 0) return null;
  return (
    <p class="banner" data-testid="doctor-needs">The link speaks of what it can’t carry: {listed(needs.value)}. Drop
      {needs.value.length === 1 ? ' it' : ' them'} here.</p>
  );
}

// What there is not yet, and what was given but has no use as it is.
function Missing() {
  if (items.value.length === 0 || busy.value !== '') return null;
  const {inputs, claim} = missing.value;
  const parts = [
    ...(inputs.length > 0 ? [`${inputs.join(', ')} (or a worked example)`] : []),
    ...(claim ? ['numbers of theirs: out, weights, scores or lse'] : []),
  ];
  return (
    <>
      {parts.length > 0 && <p data-testid="doctor-missing">Still missing: {parts.join('; and ')}. Say above which is which.</p>}
      {hints.value.map((tensor) => <p key={keyOf(tensor)} data-testid="doctor-hint"><b>{nameOf(tensor)}</b>, {tensor.shape}, {tensor.hint}.</p>)}
    </>
  );
}

// What a link can carry of this, and what it can't.
function Keep() {
  const {address, files, tooLong} = keeping.value, isAll = files.length + tooLong.length === 0;
  return (
    <p class="buttons">
      <Share />
      <span class="soft" data-testid="doctor-kept" data-kept={isAll ? 'address' : tooLong.length > 0 ? 'too-long' : 'names'}>
        {isAll ? `The address holds all of this, ${address.length} characters.`
          : 'The address holds the choices, and of these only the names: '
            + `${listed([...files, ...tooLong])}${tooLong.length > 0 ? ` (${listed(tooLong)}: too long for a link)` : ''}. Keep the files, and pass them on with the link.`}
      </span>
    </p>
  );
}

// The address follows what is given, and a link's state comes in place of it.
function useAddress(): void {
  useLayoutEffect(() => {
    const stopReading = effect(() => {
      const {fragment} = doctorLink.value;
      if (fragment.includes('?')) void untracked(() => openLink(fragment));
    });
    const stopWriting = effect(() => { if (page.value === 'doctor') write(keeping.value.address); });
    return () => {
      stopReading();
      stopWriting();
    };
  }, []);
}

export default function Doctor() {
  useEffect(() => { document.title = 'Doctor · Glasshead'; }, []);
  useAddress();
  return (
    <main data-ready={busy.value === '' ? 'true' : 'false'} data-page="doctor" aria-busy={busy.value !== ''}>
      <h1>Is this attention right?</h1>
      <p class="soft">Give what your program got, and what it got it from. Nothing leaves this page: files are read and judged here.</p>
      <div class="work">
        <div class="numbers stacked">
          <LinkTrouble />
          <Needs />
          <Drop />
          <Paste />
          <CaseChoice />
          <Given />
          <Troubles />
          {busy.value !== '' && <p role="status" data-testid="doctor-busy">{busy.value} …</p>}
          <Missing />
          <VerdictPanel />
          <Keep />
        </div>
        <div class="beside">
          <section class="panel" aria-label="options"><Options /></section>
          <ProbePanel />
        </div>
      </div>
    </main>
  );
}
