// A sheet's whole state stands in its address.
import fc from 'fast-check';
import {expect, test} from 'vitest';

import {format, kBlankSheet, parse} from '../src/address';

test('any case and what was changed in it come back exactly', () => {
  const edits = fc.record({
    base: fc.string({unit: 'grapheme', maxLength: 400}),
    set: fc.uniqueArray(fc.tuple(fc.nat(15), fc.nat(15), fc.integer()), {maxLength: 5, selector: ([i, j]) => `${i} ${j}`})
      .map((cells) => cells.map(([i, j, x]) => [`X.${i}.${j}`, String(x)] as const)),
    hide: fc.constant([]),
  });
  fc.assert(fc.property(edits, (given) => {
    const {address, wrong} = parse(format({page: 'sheet', name: 'sheet', edits: given, shown: {}, unknown: []}), 'three-tokens');
    expect(wrong).toEqual([]);
    expect(address).toEqual({page: 'sheet', name: 'sheet', edits: given, shown: {}, unknown: []});
  }), {numRuns: 500});
});

test('a blank sheet\'s address is short, and opens blank', () => {
  const {address} = parse('#/sheet', 'three-tokens');
  expect(address.edits.base).toBe(kBlankSheet);
  expect(format(address)).toBe('#/sheet?v=1');
});

test('on a lesson a case in the address is kept but not taken for a sheet\'s', () => {
  const {address} = parse('#/learn/three-tokens?v=1&case=x', 'three-tokens');
  expect(address.edits.base).toBeUndefined();
  expect(address.unknown).toEqual([['case', 'x']]);
});
