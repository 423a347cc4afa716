// One tensor as .npy: the bytes that the command writes.
import {execFileSync} from 'node:child_process';
import {mkdtempSync, readdirSync, readFileSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {afterAll, beforeAll, expect, test} from 'vitest';

import type {Table, View} from '../src/answers';
import {Engine} from '../src/engine';
import {npyOf, storable} from '../src/npy';

const root = fileURLToPath(new URL('../..', import.meta.url));
const command = process.env['GLASSHEAD'] ?? `${root}/build/release/bin/glasshead`;
const names = readdirSync(`${root}/cases`).map((name) => name.replace('.json', ''));

let engine: Engine, folder: string;
beforeAll(() => {
  engine = new Engine(new WebAssembly.Module(readFileSync(`${root}/build/wasm/bin/glasshead.wasm`)));
  folder = mkdtempSync(join(tmpdir(), 'glasshead-npy-'));
});
afterAll(() => { rmSync(folder, {recursive: true}); });

function asked(call: string, name: string, more: object): string {
  const answer = engine.call({call, name, case: readFileSync(`${root}/cases/${name}.json`, 'utf8'), ...more});
  if (!answer.ok) throw new Error(JSON.stringify(answer.problems));
  return answer.bytes;
}

function fromCommand(name: string, tap: string, ...args: string[]): Buffer {
  const file = join(folder, 'tensor.npy');
  execFileSync(command, ['trace', name, '--steps', tap, ...args, '-o', file]);
  return readFileSync(file);
}

test.each(names)('%s: every matrix that is offered is the command\'s', (name) => {
  const isEmpty = name === 'empty-row', edit = isEmpty ? {empty_row: 'zero'} : {};
  const tables = storable(JSON.parse(asked('view', name, {edit})) as View);
  const json = asked('trace', name, {edit, format: 'json'});
  expect(tables.length).toBeGreaterThan(0);
  for (const table of tables) {
    const bytes = npyOf(json, table);
    expect(bytes, table.tap).toBeDefined();
    const theirs = fromCommand(name, table.tap, ...(isEmpty ? ['--empty-row', 'zero'] : []));
    expect(Buffer.from(bytes!).equals(theirs), table.tap).toBe(true);
  }
});

test('a hidden score is -inf, an edit is in it', () => {
  const edit = {set: [{matrix: 'X', at: [1, 0], to: '0.1'}]};
  const table = storable(JSON.parse(asked('view', 'three-tokens-causal', {edit})) as View).find(({tap}) => tap === 'masked')!;
  const bytes = npyOf(asked('trace', 'three-tokens-causal', {edit, format: 'json'}), table)!;
  expect(Buffer.from(bytes).equals(fromCommand('three-tokens-causal', 'masked', '--set', 'X[1,0]=0.1'))).toBe(true);
  expect(new Float64Array(bytes.slice(128).buffer)[1]).toBe(-Infinity);
});

test('where the trace holds another number of numbers than the table says there is no file', () => {
  expect(npyOf('{"inputs":{},"out":[[1,2]]}', {tap: 'out', shape: [2, 2]} as Table)).toBeUndefined();
  expect(npyOf('{"inputs":{}}', {tap: 'out', shape: [2, 2]} as Table)).toBeUndefined();
});
