// When an edit is drawn: what is on the screen at once; what is far from it, and outlines, after the frame.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import {open, workplace} from './browser.mjs';

const {browser, server} = await workplace();

// In the page: types into X's second row, and says what stands there in the same task and after the frame.
async function editTwice() {
  const cell = (name) => document.querySelector(`[data-testid="cell-${name}"]`);
  const key = (target) => target.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true, cancelable: true}));
  const frame = () => new Promise((done) => { requestAnimationFrame(() => { setTimeout(() => { setTimeout(done); }); }); });
  const said = () => [document.querySelector('main').dataset.ready, cell('X-1-0').dataset.text, cell('weights-0-2').dataset.text];
  const edit = async (text) => {
    const target = cell('X-1-0');
    target.focus({preventScroll: true});
    key(target);
    const input = target.querySelector('input');
    input.value = text;
    key(input);
    for (let n = 0; n < 10; ++n) await null;
    const atOnce = said();
    await frame();
    return {atOnce, after: said()};
  };
  await frame();
  const far = await edit('1');
  cell('weights-0-2').scrollIntoView({block: 'center'});
  for (let n = 0; n < 3; ++n) await frame();
  return {far, near: await edit('0')};
}

test('what is on the screen is drawn at once, what is far from it after the frame; the page is ready then', async () => {
  const page = await open(browser, server, '#/learn/three-tokens', {viewport: {width: 1280, height: 300}});
  assert.deepEqual(await page.evaluate(editTwice), {
    far: {atOnce: ['false', '1', '0.4011'], after: ['true', '1', '0.3334′']},
    near: {atOnce: ['false', '0', '0.4011'], after: ['true', '0', '0.4011']},
  });
  assert.deepEqual(page.errors, []);
});
