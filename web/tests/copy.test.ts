// The case as a command and as programs: each is run, and gives the page's numbers.
import {execFileSync, spawnSync} from 'node:child_process';
import {existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {afterAll, beforeAll, expect, test} from 'vitest';

import {Engine} from '../src/engine';

const root = fileURLToPath(new URL('../..', import.meta.url));
const command = process.env['GLASSHEAD'] ?? `${root}/build/release/bin/glasshead`;
const names = readdirSync(`${root}/cases`).map((file) => file.replace(/\.json$/, ''));
const text = (name: string) => readFileSync(`${root}/cases/${name}.json`, 'utf8');

let engine: Engine;
let folder: string;
beforeAll(() => {
  engine = new Engine(new WebAssembly.Module(readFileSync(`${root}/build/wasm/bin/glasshead.wasm`)));
  folder = mkdtempSync(join(tmpdir(), 'glasshead-'));
});
afterAll(() => rmSync(folder, {recursive: true, force: true}));

function copied(name: string, as: string, edit: object = {}): string | undefined {
  const answer = engine.call({call: 'copy', as, name, case: text(name), edit});
  return answer.ok ? (JSON.parse(answer.bytes) as {text: string}).text : undefined;
}
function traced(name: string, edit: object = {}): string {
  const answer = engine.call({call: 'trace', name, case: text(name), edit});
  if (!answer.ok) throw new Error(JSON.stringify(answer.problems));
  return answer.bytes;
}
const numbersIn = (value: unknown): number[] => (Array.isArray(value) ? value.flatMap(numbersIn) : [Number(value)]);
const outOf = (name: string, edit: object = {}): number[] => {
  const trace = JSON.parse(traced(name, edit)) as Record<string, unknown>;
  return numbersIn(trace['out'] ?? trace[Object.keys(trace).find((tap) => tap.endsWith('.out'))!]);
};
const read = (printed: string) => printed.trim().split(/\s+/).map(Number);
function expectNear(found: number[], wanted: number[], what: string): void {
  expect(found.length, what).toBe(wanted.length);
  found.forEach((x, n) => expect(Math.abs(x - wanted[n]!), what).toBeLessThan(1e-12));
}

test.each<[string, object]>([
  ['three-tokens', {}],
  ['three-tokens', {set: [{matrix: 'X', at: [1, 0], to: '1'}, {matrix: 'W_Q', at: [0, 1], to: '-0.50'}], mask: 'causal', scale: '0.5'}],
  ['one-query', {set: [{matrix: 'k', at: [2, 1], to: '7'}], hide: [0]}],
  ['three-tokens', {mask: 'rows:000/111/111', empty_row: 'zero'}],
  ['cat-chases-mouse', {set: [{matrix: 'E', at: [1, 0], to: '0.4'}], mask: 'window:1,0'}],
  ['two-heads', {hide: [1]}],
])('the command of %s prints the same bytes: %o', (name, edit) => {
  const line = copied(name, 'command', edit)!;
  expect(line).toMatch(new RegExp(`^glasshead trace ${name}`));
  const path = `${dirname(command)}:${process.env['PATH']}`;
  const printed = execFileSync('sh', ['-c', `${line} --format json`], {encoding: 'utf8', env: {...process.env, PATH: path}, cwd: root});
  expect(printed).toBe(traced(name, edit));
});

const kEdits: [string, object][] = [['three-tokens', {mask: 'causal'}], ['grouped-heads', {mask: 'padding:2'}]];

test('the NumPy program of every case gives its outputs', (context) => {
  const python = ['/usr/bin/python3', 'python3'].find((program) => spawnSync(program, ['-c', 'import numpy']).status === 0);
  if (python === undefined) return context.skip();
  const all = [...names.map((name): [string, object] => [name, {}]), ...kEdits]
      .map(([name, edit]) => ({name, edit, code: copied(name, 'numpy', edit)})).filter(({code}) => code !== undefined);
  expect(all.length).toBeGreaterThan(15);
  const script = 'import io,json,sys,contextlib\nfor code in json.load(sys.stdin):\n  with contextlib.redirect_stdout(io.StringIO()) as out: exec(code, {})\n  print(json.dumps(out.getvalue()))';
  const printed = execFileSync(python, ['-c', script], {input: JSON.stringify(all.map(({code}) => code)), encoding: 'utf8'});
  printed.trim().split('\n').forEach((line, n) => {
    const {name, edit} = all[n]!;
    expectNear(read(JSON.parse(line) as string), outOf(name, edit), name);
  });
});

// What PyTorch printed when it was given the programs. PYTORCH, a Python that has it, records it anew.
interface Recorded {
  versions: string;
  programs: {name: string; edit: object; code: string; printed: string}[];
}
const kRecorded = `${root}/web/tests/pytorch.json`;

function recordPyTorch(python: string): void {
  const printedBy = (code: string) => execFileSync(python, ['-c', code], {encoding: 'utf8'});
  const programs = ([['three-tokens', {}], ...kEdits] as [string, object][]).map(([name, edit]) => {
    const code = copied(name, 'pytorch', edit)!;
    return {name, edit, code, printed: printedBy(code)};
  });
  const versions = printedBy('import platform, torch; print("Python", platform.python_version(), "PyTorch", torch.__version__)').trim();
  writeFileSync(kRecorded, `${JSON.stringify({versions, programs}, null, 1)}\n`);
}

test('the PyTorch programs are those that PyTorch was given, and it gave the same', () => {
  const python = process.env['PYTORCH'];
  if (python !== undefined) recordPyTorch(python);
  const {programs} = JSON.parse(readFileSync(kRecorded, 'utf8')) as Recorded;
  expect(programs.length).toBe(3);
  for (const {name, edit, code, printed} of programs) {
    expect(copied(name, 'pytorch', edit)).toBe(code);
    expectNear(read(printed), outOf(name, edit), name);
  }
});

test('the C++ program compiles, and gives the same', (context) => {
  const libraries = ['core', 'kernels', 'base'].map((name) => `${root}/build/release/src/libglasshead_${name}.a`);
  if (!libraries.every((library) => existsSync(library))) return context.skip();
  const [name, edit] = kEdits[1]!, source = join(folder, 'main.cc'), program = join(folder, 'main');
  writeFileSync(source, copied(name, 'cpp', edit)!);
  execFileSync('g++-12', ['-std=c++20', '-I', `${root}/include`, source, '-o', program, ...libraries, '-lfmt', '-lpthread']);
  expectNear(read(execFileSync(program, {encoding: 'utf8'})), outOf(name, edit), name);
});

test('what scale and mask cannot say is refused', () => {
  const answer = engine.call({call: 'copy', as: 'numpy', name: 'no-softmax', case: text('no-softmax')});
  expect(answer).toEqual({ok: false, problems: [{where: 'code', what: 'the program is written for scale and mask alone; there is no softmax'}]});
});

test.each(names)('every sentence of %s holds', (name) => {
  const answer = engine.call({call: 'claims', name, case: text(name)});
  expect(answer.ok).toBe(true);
  if (!answer.ok) return;
  const {claims} = JSON.parse(answer.bytes) as {claims: {says: string; holds: boolean}[]};
  expect(claims.filter(({holds}) => !holds)).toEqual([]);
});
