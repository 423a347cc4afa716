// Many edits in an address, packed.
import fc from 'fast-check';
import {expect, test} from 'vitest';

import {format, parse} from '../src/address';
import {packed, unpacked} from '../src/packed';

const edits = fc.uniqueArray(fc.tuple(fc.constantFrom('X', 'W_Q', 'block.0.ff_W_1'), fc.nat(20), fc.nat(20), fc.double({noNaN: true, noDefaultInfinity: true})),
                             {minLength: 1, maxLength: 120, selector: ([name, i, j]) => `${name} ${i} ${j}`})
    .map((all) => all.map(([name, i, j, x]) => [`${name}.${i}.${j}`, JSON.stringify(x)] as const));

// Node 18 has no such format; browsers do, and tests/web/links.test.mjs packs in one.
const hasFormat = (() => {
  try {
    return new CompressionStream('deflate-raw') !== undefined;
  } catch {
    return false;
  }
})();

test.skipIf(!hasFormat)('what is packed comes back as it was, the rest of the address untouched', async () => {
  await fc.assert(fc.asyncProperty(edits, async (set) => {
    const plain = format({page: 'learn', name: 'three-tokens', edits: {set, hide: [1], mask: 'causal'}, shown: {step: 2, pin: 'out.0.1,weights.0.0'}, unknown: [['later', 'a+b c']]});
    const short = await packed(plain);
    expect(short).toMatch(/^#\/learn\/three-tokens\?v=1&z=[\w-]+&mask=causal&hide=1&step=2&pin=out\.0\.1,weights\.0\.0&later=/);
    expect(await unpacked(short)).toBe(plain);
  }), {numRuns: 200});
});

test('without edits an address stays as it is', async () => {
  expect(await packed('#/learn/x?v=1')).toBe('#/learn/x?v=1');
  expect(await unpacked('#/learn/x?v=1')).toBe('#/learn/x?v=1');
});

test('what can\'t be unpacked is left to be named, whatever it is', async () => {
  await fc.assert(fc.asyncProperty(fc.oneof(fc.string(), fc.base64String()), async (text) => {
    const fragment = `#/learn/three-tokens?v=1&z=${encodeURIComponent(text)}&mask=causal`;
    const read = parse(await unpacked(fragment), 'x');
    expect(read.address.edits).toMatchObject({set: [], mask: 'causal'});
    expect(read.wrong.length).toBe(1);
  }), {numRuns: 300});
});

test.skipIf(!hasFormat)('a small link does not become a large one', async () => {
  const bytes = new Uint8Array(8 << 20);
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream('deflate-raw'));
  const text = Buffer.from(await new Response(stream).arrayBuffer()).toString('base64url');
  const fragment = `#/learn/three-tokens?v=1&z=${text}`;
  expect(await unpacked(fragment)).toBe(fragment);
});
