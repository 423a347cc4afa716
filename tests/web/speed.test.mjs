// How long an edit of a 16 x 16 case takes to be on the screen: printed, not judged, as the machine
// it runs on decides as much as the page. Frames come as soon as they are asked for, so that what is
// timed is work and no waiting for a display's next sixtieth of a second.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import {open, workplace} from './browser.mjs';

const kSize = 16, kEdits = 50;

// Numbers of every size with two decimals, the same every time.
function matrix(rows, columns, seed) {
  let state = seed;
  const next = () => {
    state = (state * 48271) % 2147483647;
    return ((state % 401) - 200) / 100;
  };
  return Array.from({length: rows}, () => Array.from({length: columns}, next));
}

const sixteen = JSON.stringify({
  schema: 'glasshead.case/1', title: 'sixteen tokens, causal', from: 'ours',
  tokens: Array.from({length: kSize}, (_, n) => `t${n}`), X: matrix(kSize, kSize, 1),
  attention: {W_Q: matrix(kSize, kSize, 2), W_K: matrix(kSize, kSize, 3), W_V: matrix(kSize, kSize, 4), mask: 'causal'},
});
const kCase = `<script type="application/json" id="glasshead-case">${JSON.stringify({name: 'sixteen', text: sixteen})}</script>`;

const {browser, server} = await workplace({inHead: kCase, flags: ['--disable-frame-rate-limit']});

// In the page: types numbers into cells of X, and for each waits until it is drawn. `work`: until
// the document is changed and laid out. `painted`: until the main thread has handed over the frame
// that shows it; its pixels are another thread's.
async function edits(count) {
  const cell = (i, j) => document.querySelector(`[data-testid="cell-X-${i}-${j}"]`);
  const key = (target, name) => target.dispatchEvent(new KeyboardEvent('keydown', {key: name, bubbles: true, cancelable: true}));
  const settled = () => new Promise((done) => { setTimeout(done); });
  const frame = () => new Promise((done) => { requestAnimationFrame(() => { const {port1, port2} = new MessageChannel(); port1.onmessage = done; port2.postMessage(0); }); });
  const work = [], painted = [], called = [];
  for (let n = 0; n < count; ++n) {
    const target = cell(n % 16, (n * 7) % 16);
    target.focus();
    await frame();
    await settled();
    key(target, 'Enter');
    const input = target.querySelector('input');
    input.value = `${n % 9}.${n % 10}5`;
    await frame();  // what is typed is seen
    await settled();
    const start = performance.now();
    key(input, 'Enter');
    called.push(performance.now() - start);
    await null;
    await null;
    await new Promise((done) => { queueMicrotask(done); });
    void document.body.offsetHeight;
    work.push(performance.now() - start);
    await frame();
    painted.push(performance.now() - start);
    if (target.dataset.text !== `${n % 9}.${n % 10}5`) throw new Error(`${target.dataset.text} is shown`);
  }
  return {work, painted, called};
}

const median = (times) => [...times].sort((a, b) => a - b)[times.length >> 1];

test('an edit of a 16 x 16 case', async (context) => {
  const page = await open(browser, server, '#/learn/sixteen');
  await page.evaluate(edits, 10);  // the engine's code is compiled for good while it runs
  const {work, painted, called} = await page.evaluate(edits, kEdits);
  assert.deepEqual(page.errors, []);
  const say = (times) => `${median(times).toFixed(1)} ms (${Math.min(...times).toFixed(1)} to ${Math.max(...times).toFixed(1)})`;
  context.diagnostic(`median of ${kEdits} edits: computed in ${say(called)}, laid out after ${say(work)}, painted after ${say(painted)}`);
});
