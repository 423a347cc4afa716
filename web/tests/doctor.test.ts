// What the doctor's and the sheet's pages hand to the engine, hostile text and files among it: the
// engine reads them, and goes on.
import {execFileSync, spawnSync} from 'node:child_process';
import {readFileSync} from 'node:fs';
import {fileURLToPath} from 'node:url';
import fc from 'fast-check';
import {beforeAll, describe, expect, test} from 'vitest';

import {kBlankSheet} from '../src/address';
import {Engine} from '../src/engine';

const root = fileURLToPath(new URL('../..', import.meta.url));
const command = process.env['GLASSHEAD'] ?? `${root}/build/release/bin/glasshead`;
const caseText = (name: string) => readFileSync(`${root}/cases/${name}.json`, 'utf8');

let engine: Engine;
beforeAll(() => {
  engine = new Engine(new WebAssembly.Module(readFileSync(`${root}/build/wasm/bin/glasshead.wasm`)));
});

interface Sources {
  tensors: {name: string; shape: string; type: string; role: string}[];
  troubles: {source: number; code: string; what: string}[];
}

function sources(...given: object[]): Sources {
  const answer = engine.call({call: 'sources', sources: given});
  expect(answer.ok).toBe(true);
  return JSON.parse(answer.ok ? answer.bytes : '{}') as Sources;
}

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64');

function safetensors(header: string, data = 0): Uint8Array {
  const bytes = new Uint8Array(8 + header.length + data);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(header.length), true);
  bytes.set(new TextEncoder().encode(header), 8);
  return bytes;
}

const npy = (header: string, data = 0) => {
  const padded = header.padEnd(117) + '\n';
  return Buffer.concat([Buffer.from('\x93NUMPY\x01\x00\x76\x00', 'latin1'), Buffer.from(padded), Buffer.alloc(data)]);
};

describe('file headers', () => {
  test('what a right one holds is told', () => {
    const entry = (begin: number) => `{"dtype":"F32","shape":[1,2,3],"data_offsets":[${begin},${begin + 24}]}`;
    const {tensors, troubles} = sources(
        {name: 'all.safetensors', base64: base64(safetensors(`{"q":${entry(0)},"k":${entry(24)},"v":${entry(48)}}`, 72))},
        {name: 'theirs.npy', base64: base64(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }", 48))});
    expect(troubles).toEqual([]);
    expect(tensors.map(({name, shape, type, role}) => [name, shape, type, role])).toEqual([
      ['q', '1×2×3', 'f32', 'q'], ['k', '1×2×3', 'f32', 'k'], ['v', '1×2×3', 'f32', 'v'], ['', '2×3', 'f64', 'out']]);
  });

  test.each([
    ['sizes beyond memory', 'a.npy', npy("{'descr': '<f8', 'fortran_order': False, 'shape': (9000000000000000000, 9), }", 8)],
    ['a negative size', 'a.npy', npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }", 8)],
    ['pickled objects', 'a.npy', npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", 8)],
    ['a cut file', 'a.npy', npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }", 8)],
    ['nothing', 'a.npy', new Uint8Array()],
    ['a header longer than the file', 'a.safetensors', new Uint8Array([255, 255, 255, 255, 255, 255, 255, 127, 123])],
    ['offsets beyond the end', 'a.safetensors', safetensors('{"q":{"dtype":"F64","shape":[2],"data_offsets":[0,16]}}', 8)],
    ['data that overlap', 'a.safetensors', safetensors('{"q":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},"k":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}', 8)],
    ['depth', 'a.safetensors', safetensors(`{"q":${'['.repeat(10_000)}`)],
  ])('%s', (_, name, bytes) => {
    const {tensors, troubles} = sources({name, base64: base64(bytes)});
    expect(tensors).toEqual([]);
    expect(troubles[0]).toMatchObject({source: 0, code: 'file-broken'});
    expect(troubles[0]!.what).not.toBe('');
  });

  test('any bytes are read without failing', () => {
    fc.assert(fc.property(fc.uint8Array({maxLength: 300}), fc.constantFrom('a.npy', 'a.safetensors', 'a.bin'), fc.boolean(),
        (bytes, name, isHeaded) => {
          const head = isHeaded ? npy('').subarray(0, 10) : Buffer.alloc(0);
          const {tensors, troubles} = sources({name, base64: base64(Buffer.concat([head, bytes]))});
          expect(tensors.length > 0 || troubles.length > 0 || name === 'a.safetensors').toBe(true);
        }), {numRuns: 300});
  });
});

test('any text is read without failing', () => {
  const piece = fc.constantFrom('1', '-0.5', ' ', '\t', '\n', ',', ';', '[', ']', '(', ')', 'np.array', '0,5', '…', '∞', 'x', '"', '{', '−2e3');
  fc.assert(fc.property(fc.oneof(fc.string(), fc.array(piece, {maxLength: 40}).map((parts) => parts.join(''))), (text) => {
    const {tensors, troubles} = sources({name: 'pasted', text});
    expect(tensors.length + (troubles.length > 0 ? 1 : 0)).toBeGreaterThan(0);
  }), {numRuns: 500});
});

test('numbers of any kind come back from every way of writing them', () => {
  const number = fc.double({noNaN: true, noDefaultInfinity: true}).map((x) => (Object.is(x, -0) ? 0 : x));
  fc.assert(fc.property(fc.integer({min: 1, max: 4}).chain((columns) => fc.array(fc.array(number, {minLength: columns, maxLength: columns}), {minLength: 1, maxLength: 4})), (rows) => {
    const ways = [
      rows.map((row) => row.join('\t')).join('\n'), JSON.stringify(rows), rows.map((row) => row.join(', ')).join('\n'),
      `np.array([${rows.map((row) => `[${row.join(' ')}]`).join(',\n ')}], dtype=float64)`, rows.map((row) => row.join(' ')).join('; '),
    ];
    for (const text of ways) {
      const {tensors, troubles} = sources({name: 'pasted', text});
      expect(troubles, text).toEqual([]);
      expect(tensors[0]!.shape).toBe(`${rows.length}×${rows[0]!.length}`);
    }
  }), {numRuns: 100});
});

describe('the diagnosis is the command\'s, byte for byte', () => {
  test.each([
    ['three-tokens-causal', 'weights', '1 0 0; .5 .5 0; .25 .25 .5'],
    ['three-tokens-causal', 'out', '1 0; 0.33023845 0.66976155; 0.75174492 0.75174492'],
    ['separating-causal', 'out', '3 3; 3 1.9242; 3.3195 -0.2545'],
    ['cat-eats-fish', 'weights', '0.0275 0.0275 0.9450; 0.0144 0.4928 0.4928; 0.0008 0.0008 0.9984'],
    ['one-query', 'lse', '1.6206'],
  ])('%s, %s %s', (name, role, text) => {
    const ask = (format: string) => engine.call({
      call: 'doctor', format, name, case: caseText(name), sources: [{name: 'pasted', text}], roles: {[role]: 0},
    });
    for (const [format, flags] of [['json', ['--json']], ['text', []]] as const) {
      const wanted = spawnSync(command, ['doctor', `${root}/cases/${name}.json`, `--${role}`, text, ...flags], {encoding: 'utf8'});
      expect(ask(format)).toEqual({ok: true, bytes: wanted.stdout});
    }
  });
});

describe('a sheet', () => {
  test('the page\'s blank one is the engine\'s', () => {
    const answer = engine.call({call: 'sheet'});
    expect(answer.ok && (JSON.parse(answer.bytes) as {case: string}).case).toBe(kBlankSheet);
  });

  test('any change leaves a case that can be shown, or a reason', () => {
    const size = fc.constantFrom('0', '1', '2', '3', '16', '17', 'x', '');
    fc.assert(fc.property(fc.record({
      kind: fc.constantFrom('X', 'qkv'), tokens: fc.constantFrom('A', 'A, B', 'A,A', 'p,q,r,s', ''),
      sizes: fc.record({rows: size, d_model: size, width: size, d_v: size, key_rows: size, heads: size}, {requiredKeys: []}),
      paste: fc.record({matrix: fc.constantFrom('X', 'W_Q', 'q', 'k', 'Y'), at: fc.constantFrom([], [0, 0], [1, 15], [1]),
        sources: fc.constantFrom([{name: 'p', text: '1 2; 3 4'}], [{name: 'p', text: '0,5\t1'}], [{name: 'p', text: '[[[1]]]'}], [])}),
    }, {requiredKeys: []}), (change) => {
      const answer = engine.call({call: 'sheet', case: kBlankSheet, ...change});
      if (!answer.ok) {
        expect(answer.problems.length).toBeGreaterThan(0);
        return;
      }
      const text = (JSON.parse(answer.bytes) as {case: string}).case;
      expect(engine.call({call: 'view', name: 'sheet', case: text, edit: {}}).ok).toBe(true);
      expect(engine.call({call: 'sheet', case: text})).toEqual(answer);
    }), {numRuns: 200});
  });
});

test('the command is there', () => {
  expect(execFileSync(command, ['--version'], {encoding: 'utf8'})).toContain('glasshead');
});
