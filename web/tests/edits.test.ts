import fc from 'fast-check';
import {expect, test} from 'vitest';

import {edited, type Edits, fromEngine, noEdits, placeOf, redone, startHistory, toEngine, undone, withHidden, withNumber} from '../src/edits';

const change = fc.oneof(
    fc.tuple(fc.constantFrom('X.0.0', 'X.1.0', 'W_Q.1.1'), fc.constantFrom('0', '1', '0.5'))
        .map(([place, text]) => (edits: Edits) => withNumber(edits, place, text)),
    fc.tuple(fc.nat(3), fc.boolean()).map(([key, isOn]) => (edits: Edits) => withHidden(edits, key, isOn)));

test('undoing all and redoing all brings every state back', () => {
  fc.assert(fc.property(fc.array(change, {maxLength: 30}), (changes) => {
    let history = startHistory(noEdits);
    const states = [history.now];
    for (const apply of changes) {
      const next = edited(history, apply(history.now));
      if (next !== history) states.push(next.now);
      history = next;
    }
    for (const state of [...states].reverse()) {
      expect(history.now).toEqual(state);
      history = undone(history);
    }
    for (const state of states) {
      expect(history.now).toEqual(state);
      history = redone(history);
    }
  }));
});

test('an edit after undo forgets what was undone', () => {
  const one = edited(startHistory(noEdits), withNumber(noEdits, 'X.0.0', '2'));
  const other = edited(undone(one), withNumber(noEdits, 'X.0.1', '3'));
  expect(redone(other)).toEqual(other);
});

test('what the engine is told comes back as the same edits', () => {
  const edits: Edits = {set: [['block.0.W_Q.1.0', '0.5'], ['X.2.1', '-3e4']], hide: [0, 2], mask: 'none', scale: '0.5', emptyRow: 'zero'};
  expect(fromEngine(noEdits, toEngine(edits))).toEqual(edits);
});

test('the numbers behind a matrix name are its place', () => {
  expect(placeOf('block.0.W_Q.1.0')).toEqual({matrix: 'block.0.W_Q', at: [1, 0]});
  expect(placeOf('X')).toBeUndefined();
});
