// The page's own loader, on the built module: its answers are the command's bytes.
import {execFileSync, spawnSync} from 'node:child_process';
import {existsSync, readdirSync, readFileSync} from 'node:fs';
import {fileURLToPath} from 'node:url';
import {beforeAll, describe, expect, test} from 'vitest';

import type {View} from '../src/answers';
import {noEdits, toEngine, withNumber} from '../src/edits';
import {Engine} from '../src/engine';
import {type Change, isChange, merged} from '../src/merge';

const root = fileURLToPath(new URL('../..', import.meta.url));
const command = process.env['GLASSHEAD'] ?? `${root}/build/release/bin/glasshead`;
const names = readdirSync(`${root}/cases`).map((file) => file.replace(/\.json$/, ''));
const text = (name: string) => readFileSync(`${root}/cases/${name}.json`, 'utf8');

let engine: Engine, learn: Engine;
const load = (name: string) => new Engine(new WebAssembly.Module(readFileSync(`${root}/build/wasm/bin/${name}.wasm`)));
beforeAll(() => {
  expect(existsSync(command), `${command} (make build)`).toBe(true);
  engine = load('glasshead');
  learn = load('learn');
});

const trace = (name: string, more: object) => engine.call({call: 'trace', name, case: text(name), format: 'json', ...more});
const ofCommand = (name: string, ...args: string[]) =>
  spawnSync(command, ['trace', `${root}/cases/${name}.json`, '--format', 'json', ...args], {encoding: 'utf8', maxBuffer: 1 << 28});

describe('the JSON of the page is the command\'s, byte for byte', () => {
  test.each(names)('%s', (name) => {
    const answer = trace(name, {}), wanted = ofCommand(name);
    expect(answer.ok).toBe(wanted.status === 0);
    if (answer.ok) expect(answer.bytes === wanted.stdout).toBe(true);
  });

  test('with a number changed', () => {
    const answer = trace('three-tokens', {edit: toEngine(withNumber(noEdits, 'X.1.0', '1'))});
    expect(answer).toEqual({ok: true, bytes: ofCommand('three-tokens', '--set', 'X[B,0]=1').stdout});
  });

  test('with a row addressed by index where labels are numbers', () => {
    const answer = trace('one-query', {edit: {set: [{matrix: 'k', at: [2, 0], to: '2'}]}});
    expect(answer).toEqual({ok: true, bytes: ofCommand('one-query', '--set', 'k[3]=2,1').stdout});
  });

  test.each(['none', 'causal', 'padding:2', 'causal+padding:2', 'rows:100/110/111'])('with the mask %s', (mask) => {
    expect(trace('three-tokens', {edit: {mask}})).toEqual({ok: true, bytes: ofCommand('three-tokens', '--mask', mask).stdout});
  });

  test('by hand', () => {
    expect(trace('cat-chases-mouse', {by_hand: 2})).toEqual({ok: true, bytes: ofCommand('cat-chases-mouse', '--by-hand', '2').stdout});
  });
});

// But for the check of the fused path, which only the larger one makes.
test.each(names)('%s is shown by the page\'s own module as by the one with everything', (name) => {
  const [mine, whole] = [learn, engine].map((one) => {
    const answer = one.call({call: 'view', name, case: text(name), edit: {}});
    expect(answer.ok).toBe(true);
    return JSON.parse(answer.ok ? answer.bytes : '') as View;
  });
  expect(mine!.document.sections.length).toBeGreaterThan(0);
  whole!.document.checks = whole!.document.checks.filter(({id}) => id !== 'fused-path');
  expect({...mine, serial: 0}).toEqual({...whole, serial: 0});
});

// An input's first number made another one, then the next; each view from the one before it.
test.each(names)('what changed in %s, put into the view held, is the whole view', (name) => {
  const ask = (of: Engine, request: object) => {
    const answer = of.call({call: 'view', name, case: text(name), ...request});
    return answer.ok ? JSON.parse(answer.bytes) as View | Change : undefined;
  };
  const other = load('learn');
  let held = ask(learn, {edit: {}}) as View;
  const tap = held.inputs[0];
  const table = held.document.sections[0]?.tables.find((one) => one.tap === tap);
  if (!table) return;
  const at = (n: number) => [0, ...(table.shape.length > 1 ? [0] : []), ...(table.shape.length > 2 ? [0] : [])].map((i, axis) => (axis === 0 && n > 0 && table.shape[0]! > 1 ? 1 : i));
  const set = [0, 1].map((n) => ({matrix: tap!, at: at(n), to: '0.25'}));
  for (const edit of [{set: set.slice(0, 1)}, {set}, {}, {mask: 'none'}]) {
    for (const before of [{}, {set}]) {
      const said = ask(learn, {edit, before, since: held.serial});
      const whole = ask(other, {edit, before});
      if (said === undefined || whole === undefined) {
        expect(said).toBe(whole);
        continue;
      }
      held = isChange(said) ? merged(held, said) : said;
      expect({...held, serial: 0}).toEqual({...whole, serial: 0});
    }
  }
});

test('what is wrong with a request is said, and the engine goes on', () => {
  const refused = engine.call({call: 'view', name: 'x', case: text('three-tokens'), edit: {set: [{matrix: 'X', at: [1, 0], to: 'one'}]}});
  expect(refused).toEqual({ok: false, problems: [{where: 'X.1.0', what: '"one" is not a finite number'}]});
  expect(engine.call({call: 'view', name: 'x', case: '{', edit: {}}).ok).toBe(false);
  expect(trace('three-tokens', {}).ok).toBe(true);
});

test('after a trap a fresh instance answers', () => {
  const broken = new Engine((engine as unknown as {module: WebAssembly.Module}).module);
  broken.call({call: 'step', text: '1', by: '1'});
  const exports = (broken as unknown as {exports: {gh_call: () => number}}).exports;
  (broken as unknown as {exports: object}).exports = {...exports, gh_call: () => { throw new WebAssembly.RuntimeError('unreachable'); }};
  expect(broken.call({call: 'step', text: '1', by: '1'}).ok).toBe(false);
  expect(broken.call({call: 'step', text: '1', by: '0.1'})).toEqual({ok: true, bytes: '{"text":"1.1"}'});
});

test.each([['0.2', '0.1', '0.3'], ['0.3', '-0.1', '0.2'], ['1', '1', '2'], ['0.1', '-0.1', '0'], ['0.995', '0.01', '1.005'], ['-0.05', '0.1', '0.05']])(
    'a step from %s by %s is %s', (from, by, to) => {
      expect(engine.call({call: 'step', text: from, by})).toEqual({ok: true, bytes: `{"text":"${to}"}`});
    });

test('the command is the one of this tree', () => {
  expect(execFileSync(command, ['--version'], {encoding: 'utf8'})).toContain('glasshead');
});
