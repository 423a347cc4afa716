import {expect, test} from 'vitest';

import {withoutToken} from '../src/server';

test.each([
  ['#/learn/x?v=1&token=ab12&mask=causal', '#/learn/x?v=1&mask=causal'],
  ['#/learn/x?token=ab12&v=1', '#/learn/x?v=1'],
  ['#/?v=1&token=ab12', '#/?v=1'],
  ['#/learn/x?token=ab12', '#/learn/x'],
  ['#/learn/x?v=1', '#/learn/x?v=1'],
])('the token of %s never stays in the address', (given, kept) => {
  expect(withoutToken(given)).toBe(kept);
});
