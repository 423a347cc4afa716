// What a learner does with the page, in Chromium; numbers are read from data-exact and compared with
// the command's.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {test} from 'node:test';

import {addressOf, command, download, exact, id, open, serve, shownText, texts, type, workplace} from './browser.mjs';

const {browser, server} = await workplace();

const cells = (matrix, rows, columns) =>
  [...Array(rows).keys()].flatMap((i) => [...Array(columns).keys()].map((j) => `cell-${matrix}-${i}-${j}`));
const trace = (...args) => execFileSync(command, ['trace', ...args], {encoding: 'utf8', maxBuffer: 1 << 28});
const near = async (page, name, wanted) => {
  const found = await exact(page, name);
  assert.ok(Math.abs(Number(found) - wanted) < 1e-15, `${name} is ${found}, not ${wanted}`);
};
const quiet = (page) => {
  assert.deepEqual(page.errors, []);
  assert.deepEqual(page.foreign, []);
};

test('three tokens: an edit moves 21 of 33 cells, stays in the address, and is what the command says', async () => {
  const page = await open(browser, server, '#/learn/three-tokens');
  const rowB = await Promise.all([0, 1, 2].map((j) => exact(page, `cell-weights-1-${j}`)));
  await type(page, 'cell-X-1-0', '1');
  const check = async () => {
    await near(page, 'cell-weights-0-2', 1 / 3);
    assert.equal(await shownText(page, 'cell-weights-0-2'), '0.3334′');
    assert.equal(await page.locator(id('rowsum-0-ok')).textContent(), '✓');
    assert.equal(await page.locator(id('changed-count')).textContent(), '21 of 33 cells changed');
    assert.deepEqual(await Promise.all([0, 1, 2].map((j) => exact(page, `cell-weights-1-${j}`))), rowB);
    assert.match(await addressOf(page), /[?&]e=X\.1\.0:1(&|$)/);
  };
  await check();
  await page.reload();
  await page.waitForSelector('[data-ready="true"]');
  await check();
  assert.equal(await download(page, 'json'), trace('three-tokens', '--set', 'X[B]=1,1', '--format', 'json'));
  quiet(page);
});

test('with a causal mask the same edit moves no weight of rows A and B; undo and redo bring bytes back', async () => {
  const page = await open(browser, server, '#/learn/three-tokens-causal');
  const rows = cells('weights', 2, 3);
  const given = await Promise.all(rows.map((name) => exact(page, name)));
  const first = await download(page, 'json');
  await type(page, 'cell-X-1-0', '1');
  assert.deepEqual(await Promise.all(rows.map((name) => exact(page, name))), given);
  await near(page, 'cell-out-1-0', 1);
  assert.equal(await shownText(page, 'cell-out-2-1'), '0.8022');
  const second = await download(page, 'json');
  await type(page, 'cell-W_V-0-1', '2');
  const third = await download(page, 'json');
  const press = async (name) => page.locator(id(name)).click();
  await press('undo');
  assert.equal(await download(page, 'json'), second);
  await press('undo');
  assert.equal(await download(page, 'json'), first);
  await press('redo');
  await press('redo');
  assert.equal(await download(page, 'json'), third);
  quiet(page);
});

test('masks: causal, then padding; a row with no key is refused by name, or its output is 0', async () => {
  const page = await open(browser, server, '#/learn/three-tokens');
  assert.deepEqual(await texts(page, cells('out', 1, 2)), ['0.8022', '0.5989']);
  await page.locator(id('mask-mode')).selectOption('causal');
  assert.deepEqual(await texts(page, cells('out', 1, 2)), ['1', '0']);
  assert.equal(await page.locator(id('chip-causal')).count(), 1);
  await page.locator(id('mask-padding')).selectOption('2');
  assert.equal(await page.locator(id('chip-padding')).count(), 1);
  assert.deepEqual(await texts(page, [0, 1, 2].map((j) => `cell-weights-2-${j}`)), ['0.5000', '0.5000', '·']);
  await page.locator(id('mask-query-0')).click();
  const banner = page.locator(id('banner-error'));
  assert.match(await banner.textContent(), /row A has no allowed key/);
  assert.equal(await banner.getAttribute('data-code'), 'no-key-allowed');
  assert.equal(await page.locator(id('cell-weights-0-0')).count(), 0);
  await page.locator(id('empty-row-zero')).click();
  assert.deepEqual(await texts(page, cells('out', 1, 2)), ['0', '0']);
  assert.equal((await page.locator(id('rowsum-0')).textContent()).trim(), '—');
  quiet(page);
});

test('a title that the case no longer fits is followed by what was changed', async () => {
  const page = await open(browser, server, '#/learn/three-tokens');
  const said = page.locator(id('title-changed'));
  assert.equal(await said.textContent(), '');
  await page.locator(id('mask-mode')).selectOption('causal');
  assert.equal(await said.textContent(), ' · changed: mask causal');
  await type(page, 'cell-X-1-0', '1');
  assert.equal(await said.textContent(), ' · changed: numbers, mask causal');
});

test('pairs are hidden one by one, by keyboard too', async () => {
  const page = await open(browser, server, '#/learn/three-tokens');
  await page.locator(id('mask-0-2')).focus();
  await page.keyboard.press('Space');
  assert.equal(await page.locator(id('mask-0-2')).getAttribute('aria-pressed'), 'false');
  assert.match(await addressOf(page), /mask=rows:110\/111\/111/);
  assert.equal(await shownText(page, 'cell-weights-0-2'), '·');
  assert.equal(await download(page, 'json'), trace('three-tokens', '--mask', 'rows:110/111/111', '--format', 'json'));
  quiet(page);
});

test('one query: a value moves no weight, a key moves all, its second number none; a key is hidden', async () => {
  const page = await open(browser, server, '#/learn/one-query');
  const weights = () => Promise.all(cells('weights', 1, 3).map((name) => exact(page, name)));
  const given = await weights();
  await type(page, 'cell-v-2-0', '3');
  assert.deepEqual(await weights(), given);
  await page.locator(id('undo')).click();
  await type(page, 'cell-k-2-1', '7');
  assert.deepEqual(await weights(), given);
  await page.locator(id('undo')).click();
  await type(page, 'cell-k-2-0', '2');
  const moved = await weights();
  moved.forEach((weight, j) => assert.notEqual(weight, given[j]));
  await page.locator(id('undo')).click();
  await page.locator(id('mask-key-2')).click();
  assert.deepEqual(await texts(page, cells('out', 1, 2)), ['1.3395', '0.6605']);
  quiet(page);
});

test('text that is not a number keeps the old value, marks the cell and says why; Esc restores', async () => {
  const page = await open(browser, server, '#/learn/three-tokens');
  const cell = page.locator(id('cell-X-1-0'));
  await type(page, 'cell-X-1-0', '1..2');
  assert.equal(await shownText(page, 'cell-X-1-0'), '0');
  assert.equal(await cell.getAttribute('aria-invalid'), 'true');
  assert.match(await cell.textContent(), /not a finite number/);
  await cell.focus();
  await page.keyboard.type('5');
  await page.keyboard.press('Escape');
  assert.equal(await shownText(page, 'cell-X-1-0'), '0');
  assert.doesNotMatch(await addressOf(page), /[?&]e=/);
  quiet(page);
});

test('arrows step a number by 0.1, with Shift by 1, with Alt by 0.01', async () => {
  const page = await open(browser, server, '#/learn/three-tokens');
  await page.locator(id('cell-X-1-0')).focus();
  await page.keyboard.press('Enter');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('Shift+ArrowUp');
  await page.keyboard.press('Alt+ArrowDown');
  await page.keyboard.press('Enter');
  assert.equal(await shownText(page, 'cell-X-1-0'), '1.29');
  quiet(page);
});

test('a focused cell outlines what it came from and what it feeds, and says why', async () => {
  const page = await open(browser, server, '#/learn/three-tokens-causal');
  await page.locator(id('cell-scores-1-0')).focus();
  await page.waitForSelector('[data-from]');
  const marked = (name) => page.locator(`[${name}]`).evaluateAll((all) => all.map((one) => one.dataset.testid).sort());
  assert.deepEqual(await marked('data-from'), ['cell-k-0-0', 'cell-k-0-1', 'cell-q-1-0', 'cell-q-1-1']);
  assert.deepEqual(await marked('data-feeds'), ['cell-scaled-1-0']);
  const lines = trace('three-tokens-causal', '--query', 'B', '--explain').split('\n');
  assert.equal(await page.locator(id('why')).textContent(), lines.find((line) => line.startsWith('A: ')));
  quiet(page);
});

test('a score is made again from its products, an output from weights and values', async () => {
  const page = await open(browser, server, '#/learn/three-tokens');
  await page.locator(id('cell-scores-2-2')).focus();
  await page.locator(id('derived')).waitFor();
  assert.deepEqual(await page.locator(id('derived')).allTextContents(), ['1·1 + 1·1 = 2']);
  assert.equal(await page.locator(id('why-term-1')).getAttribute('data-exact'), '1');
  await page.locator(id('cell-out-0-0')).focus();
  assert.match(await page.locator(id('why-term-C')).textContent(), /^0\.4011·1 = 0\.4011$/);
  await page.locator(id('cell-exp-0-1')).focus();
  assert.deepEqual(await page.locator(id('derived')).allTextContents(), ['exp(0 − 0.7071) = 0.4931']);
  quiet(page);
});

test('a slider moves the chosen number in steps of 0.1; undo takes all of it back', async () => {
  const page = await open(browser, server, '#/learn/three-tokens');
  await page.locator(id('cell-X-1-0')).focus();
  const slide = (to) => page.locator(id('slider')).evaluate((input, value) => {
    input.value = value;
    input.dispatchEvent(new Event('input', {bubbles: true}));
  }, String(to));
  for (const to of [21, 22, 23]) await slide(to);
  assert.equal(await shownText(page, 'cell-X-1-0'), '0.3');
  assert.match(await addressOf(page), /e=X\.1\.0:0\.3/);
  await page.locator(id('undo')).click();
  assert.equal(await shownText(page, 'cell-X-1-0'), '0');
  quiet(page);
});

test('the sentences of a lesson hold, and can be looked at', async () => {
  const page = await open(browser, server, '#/learn/three-tokens');
  await page.locator(id('claims-open')).click();
  await page.locator(id('claim-0')).waitFor();
  const holds = await page.locator('[data-testid^="claim-"][data-holds]').evaluateAll((all) => all.map((one) => one.dataset.holds));
  assert.ok(holds.length > 10 && holds.every((one) => one === 'true'), String(holds));
  const turned = page.locator('[data-testid^="claim-look-"]', {has: page.locator('text=look')}).and(page.locator('[aria-label*="turned by 90°"]'));
  await turned.first().click();
  assert.match(await addressOf(page), /e=W_K\.0\.0:0,W_K\.0\.1:-1,/);
  assert.equal(await exact(page, 'cell-scores-0-0'), '0');
  quiet(page);
});

test('tokens the other way round: the outputs move along, but not under a causal mask', async () => {
  const page = await open(browser, server, '#/learn/three-tokens');
  await page.locator(id('shuffle')).click();
  const words = page.locator(id('shuffle-words'));
  await words.waitFor();
  assert.equal(await words.getAttribute('data-moves-along'), 'true');
  assert.match(await words.textContent(), /Largest difference 0\./);
  await page.goto(`${server.origin}/#/learn/three-tokens-causal?v=1`);
  await page.locator('main[data-case="three-tokens-causal"]').waitFor();
  await page.locator(id('shuffle')).click();
  await words.waitFor();
  assert.equal(await words.getAttribute('data-moves-along'), 'false');
  assert.deepEqual(await texts(page, ['cell-out-1-0', 'cell-out-1-1']), ['0.5000', '1']);
  quiet(page);
});

test('the fused path agrees, and the sweep is drawn, by the part of the engine that is loaded then', async () => {
  const page = await open(browser, server, '#/learn/three-tokens');
  await page.locator(id('check-fused')).click();
  assert.match(await page.locator(id('check-fused-path')).textContent(), /fused path agrees ✓/);
  await page.locator(id('sweep')).click();
  await page.locator(id('sweep-plot')).waitFor({timeout: 180_000});
  assert.ok(await page.locator(id('sweep-plot')).evaluate((image) => image.decode().then(() => image.naturalWidth > 100)));
  quiet(page);
});

test('the case as a command, as it is edited', async () => {
  const page = await open(browser, server, '#/learn/three-tokens?v=1&e=X.1.0:1&mask=causal');
  await page.locator(id('copy')).click();
  await page.locator(id('copy-command')).click();
  assert.equal(await page.locator(id('copied')).textContent(), "glasshead trace three-tokens --set 'X[B,0]=1' --mask causal");
  quiet(page);
});

test('by hand with two decimals, beside the exact numbers', async () => {
  const page = await open(browser, server, '#/learn/cat-chases-mouse');
  await page.locator(id('arith-mode')).selectOption('hand2');
  await page.locator(id('by-hand')).waitFor();  // made by a part of the engine that is fetched now
  assert.deepEqual(await texts(page, ['cell-weights-1-0', 'cell-weights-1-1', 'cell-out-1-0', 'cell-out-1-1']),
                   ['0.35', '0.65', '0.48', '0.65']);
  for (const [name, wanted] of [['cell-weights-1-0', '0.3557'], ['cell-weights-1-1', '0.6443']])
    assert.match(await page.locator(id(name)).textContent(), new RegExp(`exact ${wanted}`));
  assert.match(await addressOf(page), /mode=hand2/);
  assert.equal(await download(page, 'text'), trace('cat-chases-mouse', '--by-hand', '2'));
  quiet(page);
});

test('the next token is "chases"; with an identity feed-forward it is "cat"', async () => {
  const page = await open(browser, server, '#/learn/cat-chases-mouse-next');
  const last = [0, 1, 2, 3, 4].map((j) => `cell-probabilities-2-${j}`);
  assert.deepEqual(await texts(page, last), ['0.2133', '0.3062', '0.1886', '0.1766', '0.1153']);
  await page.locator(id('drill-0')).click();
  await page.locator(id('predict-check')).click();
  await page.locator(id('predict-apply')).click();
  assert.match(await addressOf(page), /e=W_FFN\.0\.0:1,W_FFN\.0\.1:0,/);
  assert.deepEqual((await texts(page, last)).slice(0, 2), ['0.2768', '0.1988']);
  quiet(page);
});

test('a mistake stands beside the right run, its rows checked', async () => {
  const page = await open(browser, server, '#/learn/three-tokens-causal');
  await page.locator(id('mistakes-open')).click();
  await page.locator(id('mistake-mask-after')).check();
  const sums = [];
  for (const i of [0, 1, 2]) sums.push((await page.locator(id(`wrong-rowsum-${i}`)).textContent()).trim());
  assert.deepEqual(sums, ['0.4011 ✗', '0.5989 ✗', '1.0000 ✓']);
  assert.match(await page.locator(id('mistake-shown')).textContent(), /hide before softmax/);
  assert.match(await addressOf(page), /mistake=mask-after/);
  assert.equal(await download(page, 'json'), trace('three-tokens-causal', '--mistake', 'mask-after', '--format', 'json'));
  await page.goto(`${server.origin}/#/learn/softmax-five?v=1`);
  await page.locator('main[data-case="softmax-five"]').waitFor();
  quiet(page);
});

test('predict first: ticks in rows A and B are wrong, with the reason; row C\'s three are right', async () => {
  const page = await open(browser, server, '#/learn/three-tokens-causal');
  await page.locator(id('drill-1')).click();
  const tick = (i, j) => page.locator(id(`predict-cell-weights-${i}-${j}`)).check();
  await tick(1, 0);
  for (const j of [0, 1, 2]) await tick(2, j);
  await page.locator(id('predict-check')).click();
  assert.equal(await page.locator(id('predict-result')).getAttribute('data-right'), 'false');
  assert.match(await page.locator(id('graded-cell-weights-1-0')).textContent(), /✗ stays/);
  for (const j of [0, 1, 2]) assert.match(await page.locator(id(`graded-cell-weights-2-${j}`)).textContent(), /✓/);
  assert.match(await page.locator(id('predict-why')).first().textContent(), /in row B every score rose by the same amount/);
  await page.locator(id('predict-apply')).click();
  assert.match(await addressOf(page), /e=X\.1\.0:1/);
  quiet(page);
});

test('a link that is partly wrong loses only that part; an unknown case gives the banner, not a blank page', async () => {
  const page = await open(browser, server, '#/learn/three-tokens?v=9&e=X.1.0:1,X.9.9:1,Y.0.0:2&mask=causal&hide=7&zoom=3');
  const banner = await page.locator(id('banner-link')).textContent();
  for (const part of ['newer version', 'e=X.9.9:1', 'e=Y.0.0:2', 'hide=7']) assert.ok(banner.includes(part), banner);
  assert.match(await addressOf(page), /e=X\.1\.0:1&mask=causal&zoom=3/);
  await near(page, 'cell-out-1-0', 1);
  await page.goto(`${server.origin}/#/learn/no-such-case?v=1`);
  await page.waitForFunction(() => document.querySelector('[data-testid="banner-link"]')?.textContent.includes('no-such-case'));
  quiet(page);
});

test('an engine that cannot be loaded says so, and the edits stay in the address', async () => {
  const broken = await serve({broken: 'not a module'});
  const page = await open(browser, broken, '#/learn/three-tokens?v=1&e=X.1.0:1');
  assert.equal(await page.locator(id('banner-error')).getAttribute('data-code'), 'engine-not-loaded');
  assert.match(await addressOf(page), /e=X\.1\.0:1/);
  broken.close();
});

test('every case opens without an error, and asks for nothing but the page\'s own files', async () => {
  const page = await open(browser, server);
  const names = await page.locator('nav a[href^="#/learn/"]').evaluateAll((all) => all.map((link) => link.getAttribute('href')));
  assert.ok(names.length > 20);
  for (const fragment of names) {
    await page.goto(`${server.origin}/${fragment}`);
    await page.waitForFunction((wanted) => document.querySelector('main')?.dataset.case === wanted, fragment.slice('#/learn/'.length).split('?')[0]);
    assert.equal(await page.locator(id('banner-link')).count(), 0, fragment);
  }
  quiet(page);
});
