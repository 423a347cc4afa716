// The doctor's whole state stands in its address, while it is not too long.
import fc from 'fast-check';
import {expect, test} from 'vitest';

import {kMostAddress} from '../src/address';
import {type DoctorLink, formatDoctor, kept, kRoles, parseDoctor} from '../src/doctor_address';

const filled = fc.string({unit: 'grapheme', minLength: 1, maxLength: 60}).filter((text) => text.trim() !== '');
const typed = filled.map((text) => text.trim());
const name = fc.oneof(fc.constantFrom('pasted', 'pasted out', 'pasted weights', 'pasted by me', 'theirs.csv', 'a,b%.csv'), filled);
const unique = <T>(value: fc.Arbitrary<readonly [string, T]>, maxLength = 4) =>
  fc.uniqueArray(value, {maxLength, selector: ([key]) => key}) as fc.Arbitrary<(readonly [string, T])[]>;

const link: fc.Arbitrary<DoctorLink> = fc.record({
  case: fc.constantFrom('', 'three-tokens-causal', 'file:mine.json'),
  texts: unique(fc.tuple(name, filled)),
  needs: fc.constant([]),
  roles: unique(fc.tuple(filled, fc.constantFrom('', ...kRoles))),
  options: unique(fc.oneof(fc.tuple(fc.constantFrom('scale', 'heads', 'window', 'alibi', 'decimals'), typed),
                           fc.constantFrom(['causal', 'yes'] as const, ['rope', 'halves'] as const, ['dtype', 'f32'] as const, ['pairs', 'no'] as const))),
  unknown: unique(fc.tuple(fc.constantFrom('later', 'x y', 'é', '+'), fc.string({unit: 'grapheme'}))),
}).chain((read) => fc.uniqueArray(name, {maxLength: 3}).map((names) =>
  ({...read, needs: names.filter((one) => !read.texts.some(([known]) => known === one))})));

test('every state comes back from its address exactly', () => {
  fc.assert(fc.property(link, (state) => {
    const {link: read, wrong} = parseDoctor(formatDoctor(state));
    expect(wrong).toEqual([]);
    expect(read).toEqual(state);
  }), {numRuns: 1000});
});

test('whatever stands there is read without failing, and what is kept comes back', () => {
  const mangled = fc.tuple(link.map(formatDoctor), fc.nat(), fc.string({maxLength: 4}))
      .map(([text, at, more]) => text.slice(0, at % (text.length + 1)) + more + text.slice((at % (text.length + 1)) + 1));
  fc.assert(fc.property(fc.oneof(mangled, fc.string(), fc.string().map((text) => `#/doctor?${text}`)), (fragment) => {
    const {link: read} = parseDoctor(fragment);
    const again = parseDoctor(formatDoctor(read));
    expect(again.wrong).toEqual([]);
    expect(again.link).toEqual(read);
  }), {numRuns: 1000});
});

const none: DoctorLink = {case: '', texts: [], needs: [], roles: [], options: [], unknown: []};

test('what was pasted is readable in the address', () => {
  expect(formatDoctor({...none, case: 'three-tokens-causal', texts: [['pasted weights', '1 0 0; .5 .5 0; .25 .25 .5']], options: [['decimals', '2']]}))
      .toBe('#/doctor?v=1&case=three-tokens-causal&pasted.weights=1+0+0;+.5+.5+0;+.25+.25+.5&decimals=2');
});

test('a choice that does not exist, a second text of a name and a newer version are left out and named', () => {
  const {link: read, wrong} = parseDoctor('#/doctor?v=2&causal=perhaps&scale=0.5&scale=1&is.x.npy=nothing&pasted=&zoom=3');
  expect(wrong).toEqual(['v=2 (the link is from a newer version of this page)', 'causal=perhaps', 'scale=1', 'is.x.npy=nothing', 'pasted=']);
  expect(read).toEqual({...none, options: [['scale', '0.5']], unknown: [['zoom', '3']]});
});

test('the longest texts give way until an address fits, and are named in it', () => {
  const texts: [string, string][] = [['pasted out', '1 '.repeat(2000)], ['q.csv', '1,'.repeat(9000)], ['k.csv', '2,'.repeat(7000)]];
  const {address, tooLong} = kept({...none, texts, needs: ['v.npy']});
  expect(tooLong).toEqual(['q.csv', 'k.csv']);
  expect(address.length).toBeLessThanOrEqual(kMostAddress);
  expect(parseDoctor(address).link).toEqual({...none, texts: [texts[0]], needs: ['v.npy', 'q.csv', 'k.csv']});
});
