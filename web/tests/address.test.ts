import fc from 'fast-check';
import {expect, test} from 'vitest';

import {type Address, format, parse} from '../src/address';
import type {Edits} from '../src/edits';

const index = fc.nat(9999);
const place = fc.tuple(fc.constantFrom('X', 'W_Q', 'k', 'E', 'block.0.W_V', 'block.12.ff_W_1'),
                       fc.array(index, {minLength: 1, maxLength: 4}))
    .map(([matrix, at]) => [matrix, ...at].join('.'));
const number = fc.double({noNaN: true, noDefaultInfinity: true}).map((x) => JSON.stringify(x));
const optional = <T>(key: string, value: fc.Arbitrary<T>) =>
    fc.option(value, {nil: undefined}).map((x) => (x === undefined ? {} : {[key]: x}));

const edits: fc.Arbitrary<Edits> = fc.tuple(
    fc.uniqueArray(fc.tuple(place, number), {selector: ([name]) => name, maxLength: 60}),
    fc.uniqueArray(index, {maxLength: 5}),
    optional('mask', fc.constantFrom('none', 'causal', 'window:2,0', 'window:,1', 'prefix:3', 'causal+padding:2', 'rows:100/110/111')),
    optional('scale', number), optional('emptyRow', fc.constantFrom('zero', 'error')))
    .map(([set, hide, ...more]) => Object.assign({set, hide: hide.sort((a, b) => a - b)}, ...more) as Edits);

const address: fc.Arbitrary<Address> = fc.record({
  page: fc.constant('learn' as const),
  name: fc.constantFrom('three-tokens', 'cat-chases-mouse', 'x'),
  edits,
  shown: fc.tuple(optional('step', fc.nat(40)), optional('hand', fc.nat(12)),
                  optional('mistake', fc.constantFrom('mask-after', 'scale-other:0.5', 'mask-finite:-1')),
                  optional('sel', fc.constantFrom('weights.1.0', 'block.0.weights.h3.1.0')),
                  optional('pin', fc.constantFrom('out.0.1', 'out.0.1,weights.0.2,block.0.weights.h3.1.0')))
      .map((parts) => Object.assign({}, ...parts)),
  unknown: fc.array(fc.tuple(fc.constantFrom('later', 'x y', 'é', '='), fc.string({unit: 'grapheme'})), {maxLength: 3}),
});

test('every state comes back from its address exactly', () => {
  fc.assert(fc.property(address, (state) => {
    const {address: read, wrong} = parse(format(state), 'three-tokens');
    expect(wrong).toEqual([]);
    expect(read).toEqual(state);
    expect(format(read)).toBe(format(state));
  }), {numRuns: 1000});
});

test('whatever stands in the fragment is read without failing, and what it keeps comes back', () => {
  const mangled = fc.tuple(address.map(format), fc.nat(), fc.string({maxLength: 4}))
      .map(([text, at, more]) => text.slice(0, at % (text.length + 1)) + more + text.slice((at % (text.length + 1)) + 1));
  fc.assert(fc.property(fc.oneof(mangled, fc.string(), fc.string().map((s) => `#/learn/x?${s}`)), (fragment) => {
    const {address: read} = parse(fragment, 'three-tokens');
    const again = parse(format(read), 'three-tokens');
    expect(again.wrong).toEqual([]);
    expect(again.address).toEqual(read);
  }), {numRuns: 1000});
});

test('an edit is readable in the address', () => {
  const state: Address = {page: 'learn', name: 'three-tokens', edits: {set: [['X.1.0', '1']], hide: [2], mask: 'causal+padding:2'}, shown: {step: 4}, unknown: []};
  expect(format(state)).toBe('#/learn/three-tokens?v=1&e=X.1.0:1&mask=causal+padding:2&hide=2&step=4');
});

test('a bad value is left out and named; the rest is kept', () => {
  const {address: read, wrong} = parse('#/learn/three-tokens?v=1&e=X.1.0:one,X.0.0:2&hide=1,x&step=99999&mask=causal', 'x');
  expect(wrong).toEqual(['e=X.1.0:one', 'hide=x', 'step=99999']);
  expect(read.edits).toEqual({set: [['X.0.0', '2']], hide: [1], mask: 'causal'});
});

test('a link from a newer version is said to be one, and its unknown keys are kept', () => {
  const {address: read, wrong} = parse('#/learn/three-tokens?v=2&zoom=3', 'x');
  expect(wrong).toEqual(['v=2 (the link is from a newer version of this page)']);
  expect(format(read)).toContain('zoom=3');
});
