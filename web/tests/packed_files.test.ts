// What tools/pack.mjs packs comes out again, and nothing else is taken for it.
import {readFileSync} from 'node:fs';
import {fileURLToPath} from 'node:url';
import {expect, test} from 'vitest';

import {unpacked} from '../src/lzma';
import {joined} from '../src/module_streams';
import {bytesOf} from '../src/text_bytes';
// @ts-expect-error: a script without types
import {asText, packed, split} from '../../tools/pack.mjs';

// Bytes of every kind: runs, a text's repetitions at every distance, and what nothing can be guessed of.
function sample(size: number, seed: number): Uint8Array {
  const out = new Uint8Array(size);
  let state = seed;
  const next = (): number => {
    state = (state * 48271) % 2147483647;
    return state >> 7;
  };
  for (let at = 0; at < size;) {
    const kind = next() % 4, count = 1 + next() % 300, from = next() % (at + 1);
    for (let n = 0; n < count && at < size; ++n, ++at)
      out[at] = kind === 0 ? next() : kind === 1 ? 65 + at % 7 : kind === 2 ? 0 : out[from + n]!;
  }
  return out;
}

const samples = [0, 1, 2, 3, 100, 4097, 300_000].map((size) => sample(size, size + 1));

test('bytes come out of packing as they went in', () => {
  for (const bytes of samples)
    expect(Buffer.compare(unpacked(packed(Buffer.from(bytes)) as Buffer), bytes)).toBe(0);
});

test('what is cut short, changed or no packed file is an error or other bytes, never a hang', () => {
  const whole = packed(Buffer.from(samples[5]!)) as Buffer;
  expect(() => unpacked(whole.subarray(0, 20))).toThrow('packed module');
  expect(() => unpacked(whole.subarray(0, 10))).toThrow('not a packed module');
  expect(() => unpacked(Buffer.from('<!doctype html><title>404</title>'))).toThrow();
  for (let at = 18; at < whole.length; at += 97) {
    const changed = Buffer.from(whole);
    changed[at]! ^= 0x55;
    let out: Uint8Array | undefined;
    try {
      out = unpacked(changed);
    } catch (error) {
      expect(String(error)).toMatch(/packed module/);
    }
    if (out) expect(out.length).toBe(4097);
  }
});

test('bytes go through text that HTML, attributes and JSON leave alone', () => {
  for (const bytes of samples) {
    const text = asText(Buffer.from(bytes)) as string;
    expect(text).not.toMatch(/[^!-~]|["&'<>\\]/);
    expect(Buffer.compare(bytesOf(text).subarray(0, bytes.length), bytes)).toBe(0);
    expect(bytesOf(text).length - bytes.length).toBeLessThan(4);
  }
  expect(() => bytesOf('abc<e')).toThrow('changed on its way');
});

test.each(['learn', 'lesson', 'glasshead'])('%s.wasm is joined from its parts byte for byte', (name) => {
  const module = readFileSync(fileURLToPath(new URL(`../../build/wasm/bin/${name}.wasm`, import.meta.url)));
  const parts = split(module) as Buffer;
  expect(Buffer.compare(joined(parts), module)).toBe(0);
  expect(() => joined(parts.subarray(0, parts.length - 1000))).toThrow();
});
