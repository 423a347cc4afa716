// What the doctor was given and what it says. Files are carried as bytes to the engine, which reads
// them, guesses which is which, and judges; here nothing is parsed.
import {batch, computed, signal} from '@preact/signals';

import {asBase64} from './bytes';
import {type DoctorLink, isJudging, kept, kRoles, parseDoctor, pastedName} from './doctor_address';
import type {Answer, Problem} from './engine';
import {kNotLoaded, Lane} from './full';
import {caseText, fetchedCase} from './lessons';
import {hasServer, postCall} from './server';
import {linkTrouble} from './store';

export interface Item {
  id: number;
  name: string;
  size: number;
  base64?: string;
  text?: string;
  trouble?: Trouble;  // it was not even handed to the engine
}

export interface Trouble {
  code: string;
  name: string;
  what: string;
}

export interface Tensor {
  source: number;
  source_name: string;
  name: string;
  shape: string;
  type: string;
  role: string;
  hint: string;  // what its shape says against that
  text: string;
  decimals: string;
}

type Request = {call: string} & Record<string, unknown>;

interface Sources {
  tensors: Tensor[];
  cases: {source: number; source_name: string; title: string}[];
  troubles: {source: number; source_name: string; code: string; what: string}[];
}

export interface JudgedCell { found: string; exact: string; right: string; wrong: boolean }
export interface JudgedTable {
  claim: string;
  columns: string[];
  rows: {label: string; right: boolean; cells: JudgedCell[]}[];
}

export interface Verdict {
  diagnosis: {verdict: 'right' | 'mistaken' | 'unexplained'; causes: {name: string}[]; blind: string[]; probe?: string | null};
  lines: {label: string; text: string}[];
  tables: JudgedTable[];
  shape: Record<string, string>;
  command: string;
}

export interface Probe {
  file: string;
  has_mask: boolean;
  alike: string[][];
  least_distance: string;
  command: string;
}

export const kMostBytes = 8 << 20;  // that a page reads by itself

export const items = signal<Item[]>([]);
export const read = signal<Sources>({tensors: [], cases: [], troubles: []});
export const chosen = signal<Record<string, string>>({});  // roles, by what a tensor is called
export const theCase = signal('');                          // "": none; "name"; "file:name"
export const options = signal<Record<string, string>>({});
export const judging = signal<Record<string, string>>({});  // decimals, dtype, pairs
export const verdict = signal<Verdict | undefined>(undefined);
export const problems = signal<Problem[]>([]);
export const code = signal('');
export const busy = signal('');
export const probeShape = signal<Record<string, string>>({});
export const probe = signal<Probe | undefined>(undefined);
export const probeProblems = signal<Problem[]>([]);
export const needs = signal<string[]>([]);  // files that a link names and can't carry, until they are dropped
const unknown = signal<DoctorLink['unknown']>([]);

let nextId = 0;
let running = 0;  // how much is being waited for: one thing may start another

async function during(words: string, work: () => Promise<void>): Promise<void> {
  ++running;
  busy.value = words;
  await work().finally(() => { if (--running === 0) busy.value = ''; });
}

const reading = new Lane(), judgement = new Lane(), probing = new Lane();

export const keyOf = ({source_name, name}: Tensor) => (name === '' ? source_name : `${source_name}:${name}`);
export const roleOf = (tensor: Tensor) => chosen.value[keyOf(tensor)] ?? tensor.role;

const handed = computed(() => items.value.filter(({trouble}) => trouble === undefined));
const isLarge = () => handed.peek().reduce((sum, {size}) => sum + size, 0) > kMostBytes;

const sourcesOf = () => handed.peek().map(({name, base64, text}) =>
  (base64 === undefined ? {name, text: text ?? ''} : {name, base64}));

// The case's text: a bundled one, or a file's.
function caseFields(): {name?: string; case?: string} {
  const choice = theCase.peek();
  if (choice === '') return {};
  if (!choice.startsWith('file:')) return {name: choice, case: caseText(choice) ?? ''};
  const name = choice.slice('file:'.length);
  return {name, case: items.peek().find((item) => item.name === name)?.text ?? ''};
}

// Cases go as the case, not as numbers.
const isCase = (name: string) => theCase.peek() === `file:${name}`;

async function ask(lane: Lane, request: Request): Promise<Answer | undefined> {
  if (isLarge() && hasServer()) return postCall(request);
  return lane.call(request);
}

function codeOf(found: Problem[]): string {
  const known = ['server-gone', 'too-large', 'too-slow', kNotLoaded];
  return known.find((name) => found.some(({where}) => where === name)) ?? 'refused';
}

const readAll = (): Promise<void> => during('reading', async () => {
  const answer = await ask(reading, {call: 'sources', ...caseFields(), sources: sourcesOf()});
  if (answer === undefined) return;
  if (!answer.ok) {
    problems.value = answer.problems;
    code.value = codeOf(answer.problems);
    return;
  }
  read.value = JSON.parse(answer.bytes) as Sources;
  const first = read.value.cases[0];
  if (first && !theCase.peek().startsWith('file:')) {
    theCase.value = `file:${first.source_name}`;
    return readAll();
  }
  return judge();
});

function rolesNow(): Record<string, number> {
  const roles: Record<string, number> = {};
  read.peek().tensors.forEach((tensor, n) => {
    const role = roleOf(tensor);
    if (role !== '') roles[role] = n;
  });
  return roles;
}

// What a verdict still needs.
export const missing = computed(() => {
  const roles = read.value.tensors.map(roleOf);
  const isClaimed = roles.some((role) => kRoles.indexOf(role) >= kRoles.indexOf('out') && role !== 'd_out');
  return {inputs: theCase.value === '' ? ['q', 'k', 'v'].filter((name) => !roles.includes(name)) : [], claim: !isClaimed};
});
const hasEnough = computed(() => missing.value.inputs.length === 0 && !missing.value.claim);

// Of tensors that keep the role that was guessed, or none.
export const hints = computed(() => read.value.tensors.filter((tensor) => tensor.hint !== '' && roleOf(tensor) === tensor.role));

const filled = (fields: Record<string, string>) =>
  Object.fromEntries(Object.entries(fields).filter(([, text]) => text.trim() !== '').map(([key, text]) => [key, text.trim()]));

// The sources without those that the engine could not read: tensors keep their numbers.
function request(format: string): Request {
  const broken = read.peek().troubles.map(({source}) => source);
  const sources = sourcesOf().filter(({name}, n) => !broken.includes(n) && !isCase(name));
  const beside = theCase.peek() === '' ? {options: filled(options.peek())} : {};
  return {call: 'doctor', format, ...caseFields(), sources, roles: rolesNow(), ...beside, ...filled(judging.peek())};
}

let judged = 0;  // the last question counts, even where it needs no answer

export async function judge(): Promise<void> {
  verdict.value = undefined;
  problems.value = [];
  code.value = '';
  const mine = ++judged;
  if (!hasEnough.peek()) return;
  await during('judging', async () => {
    const answer = await ask(judgement, request('page'));
    if (mine !== judged) return;
    if (answer?.ok) {
      verdict.value = JSON.parse(answer.bytes) as Verdict;
      probeShape.value = {...verdict.value.shape};
    } else if (answer) {
      problems.value = answer.problems;
      code.value = codeOf(answer.problems);
    }
  });
}

// The command's bytes.
export const exportedVerdict = (format: 'json' | 'text') => ask(judgement, request(format));

const kTextEndings = /\.(?:json|csv|tsv|txt|md)$/i;

function tooLarge(): string {
  return 'with the other files it is more than the 8 MiB that a page reads. On the command line: '
      + 'glasshead doctor --q q.npy --k k.npy --v v.npy --out theirs.npy; or start glasshead view and open this page there';
}

async function itemOf(file: File, sizeSoFar: number): Promise<Item> {
  const item: Item = {id: nextId++, name: file.name, size: file.size};
  if (sizeSoFar + file.size > kMostBytes && !hasServer())
    return {...item, trouble: {code: 'too-large', name: file.name, what: tooLarge()}};
  try {
    if (kTextEndings.test(file.name)) return {...item, text: await file.text()};
    return {...item, base64: await asBase64(file)};
  } catch (error) {
    return {...item, trouble: {code: 'file-unreadable', name: file.name, what: String(error)}};
  }
}

export const addFiles = (files: readonly File[]): Promise<void> => during('reading', async () => {
  let size = handed.peek().reduce((sum, item) => sum + item.size, 0);
  const added: Item[] = [];
  for (const file of files) {
    const item = await itemOf(file, size);
    if (item.trouble === undefined) size += item.size;
    added.push(item);
  }
  const names = added.map(({name}) => name);
  items.value = [...items.value.filter(({name}) => !names.includes(name)), ...added];
  needs.value = needs.value.filter((name) => !names.includes(name));
  await readAll();
});

export async function addText(text: string, role: string): Promise<void> {
  const name = pastedName(role);
  items.value = [...items.value.filter((item) => item.name !== name), {id: nextId++, name, size: text.length, text}];
  needs.value = needs.value.filter((needed) => needed !== name);
  await readAll();
}

export async function remove(item: Item): Promise<void> {
  items.value = items.value.filter(({id}) => id !== item.id);
  if (isCase(item.name)) theCase.value = '';
  await readAll();
}

export const chooseCase = (name: string): Promise<void> => during('reading', async () => {
  if (name !== '' && !name.startsWith('file:') && await fetchedCase(name) === undefined) {
    problems.value = [{where: name, what: 'cannot be fetched now; choose it again'}];
    code.value = 'refused';
    return;
  }
  theCase.value = name;
  chosen.value = {};
  await readAll();
});

export async function chooseRole(tensor: Tensor, role: string): Promise<void> {
  const taken = read.peek().tensors.find((other) => other !== tensor && role !== '' && roleOf(other) === role);
  chosen.value = {...chosen.value, ...(taken ? {[keyOf(taken)]: ''} : {}), [keyOf(tensor)]: role};
  await judge();
}

export async function setOption(key: string, text: string): Promise<void> {
  options.value = {...options.value, [key]: text};
  await judge();
}

export async function setJudging(key: string, text: string): Promise<void> {
  judging.value = {...judging.value, [key]: text};
  await judge();
}

export const makeProbe = (seed: string): Promise<void> => during('making a probe', async () => {
  probe.value = undefined;
  probeProblems.value = [];
  const beside = theCase.peek() === '' ? {options: filled(options.peek())} : caseFields();
  const answer = await probing.call({call: 'probe', shape: filled(probeShape.peek()), seed, ...beside});
  if (answer === undefined) return;
  if (answer.ok) probe.value = JSON.parse(answer.bytes) as Probe;
  else probeProblems.value = answer.problems;
});

const pairs = (fields: Record<string, string>) => Object.entries(fields);

const link = computed<DoctorLink>(() => {
  const whole = items.value.filter(({trouble}) => trouble === undefined);
  const texts = whole.flatMap(({name, text}) => (text === undefined || text.trim() === '' ? [] : [[name, text] as const]));
  const others = whole.filter(({text}) => text === undefined).map(({name}) => name);
  return {
    case: theCase.value, texts, needs: [...others, ...needs.value.filter((name) => !whole.some((item) => item.name === name))],
    roles: pairs(chosen.value), options: [...pairs(filled(options.value)), ...pairs(filled(judging.value))], unknown: unknown.value,
  };
});

// Where all of it is: in the address, but for files and for what is too long.
export const keeping = computed(() => ({...kept(link.value), files: link.value.needs}));

// A link's state in place of what was here.
export const openLink = (fragment: string): Promise<void> => during('reading', async () => {
  const {link: read, wrong} = parseDoctor(fragment);
  const isFile = read.case.startsWith('file:');
  const isKnown = read.case === '' || (isFile ? [...read.texts.map(([name]) => name), ...read.needs].includes(read.case.slice('file:'.length))
                                              : await fetchedCase(read.case) !== undefined);
  if (!isKnown) wrong.push(`the case ${read.case}`);
  batch(() => {
    items.value = read.texts.map(([name, text]) => ({id: nextId++, name, size: text.length, text}));
    needs.value = [...read.needs];
    chosen.value = Object.fromEntries(read.roles);
    theCase.value = isKnown ? read.case : '';
    options.value = Object.fromEntries(read.options.filter(([name]) => !isJudging(name)));
    judging.value = Object.fromEntries(read.options.filter(([name]) => isJudging(name)));
    unknown.value = read.unknown;
    probe.value = undefined;
    linkTrouble.value = wrong;
  });
  await readAll();
});

export async function clearAll(): Promise<void> {
  items.value = [];
  needs.value = [];
  unknown.value = [];
  chosen.value = {};
  theCase.value = '';
  options.value = {};
  judging.value = {};
  probe.value = undefined;
  await readAll();
}
