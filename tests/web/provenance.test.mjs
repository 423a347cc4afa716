// Pinned provenance: what a number came from stays outlined while one goes on.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import {findings, kLooks} from './axe.mjs';
import {addressOf, id, open, shownText, type, workplace} from './browser.mjs';

const {browser, server} = await workplace();

const marked = (page, name) => page.locator(`[${name}]`).evaluateAll((all) => all.map((one) => one.dataset.testid).sort());
const becomes = (page, name, count) => page.waitForFunction(([attribute, wanted]) => document.querySelectorAll(`[${attribute}]`).length === wanted, [name, count]);
const kSources = ['cell-exp-1-0', 'cell-exp-1-1', 'cell-exp-1-2'];

test('by keyboard: Enter pins, the outlines and the derivation stay while an input is changed, Esc lets go', async () => {
  const page = await open(browser, server, '#/learn/three-tokens');
  await page.locator(id('cell-weights-1-0')).focus();
  await page.keyboard.press('Enter');
  await becomes(page, 'data-pinned', 1);
  const from = await marked(page, 'data-from');
  assert.deepEqual(from, kSources);
  assert.match(await addressOf(page), /[?&]pin=weights\.1\.0(&|$)/);
  assert.equal(await page.locator(id('pin-said')).textContent(), 'pinned: weight, query B, key A; made from 3 numbers');
  assert.equal(await page.locator(id('cell-weights-1-0')).getAttribute('aria-selected'), 'true');
  const described = await page.locator(id(from[0])).getAttribute('aria-describedby');
  assert.equal(await page.locator(`#${described}`).textContent(), 'the pinned number is made from it');
  const why = await page.locator(id('why')).textContent();
  await type(page, 'cell-X-2-1', '3');
  assert.deepEqual(await marked(page, 'data-from'), from);
  assert.notEqual(await page.locator(id('why')).textContent(), why);
  assert.match(await page.locator(id('why')).textContent(), /^A: q·k/);
  await page.keyboard.press('Escape');
  await becomes(page, 'data-pinned', 0);
  assert.deepEqual(await marked(page, 'data-selected'), ['cell-X-2-1']);
  assert.doesNotMatch(await addressOf(page), /pin=/);
  assert.equal(await page.locator(id('pin-said')).textContent(), '');
  assert.equal(await shownText(page, 'cell-X-2-1'), '3');
  assert.deepEqual(page.errors, []);
});

test('by mouse: a click pins, one on a source goes on from there, the chain leads back, another click lets go', async () => {
  const page = await open(browser, server, '#/learn/three-tokens');
  await page.locator(id('cell-out-0-1')).click();
  await becomes(page, 'data-pinned', 1);
  assert.ok((await marked(page, 'data-from')).includes('cell-weights-0-2'));
  await page.locator(id('cell-weights-0-2')).click();
  await page.waitForSelector(id('pin-1'));
  assert.deepEqual(await page.locator('[data-testid^="pin-"][aria-current], [data-testid="pin-0"]').allTextContents(), ['output, row A, column 1', 'weight, query A, key C']);
  assert.match(await addressOf(page), /[?&]pin=out\.0\.1,weights\.0\.2/);
  await page.reload();
  await page.waitForSelector(id('pin-1'));
  await becomes(page, 'data-pinned', 1);
  assert.deepEqual(await marked(page, 'data-pinned'), ['cell-weights-0-2']);
  await page.locator(id('pin-0')).click();
  await page.waitForFunction((cell) => document.querySelector(cell)?.hasAttribute('data-pinned'), id('cell-out-0-1'));
  assert.equal(await page.locator(id('pin-1')).count(), 0);
  // A cell from elsewhere starts anew; the same again lets go.
  await page.locator(id('cell-scores-2-2')).click();
  await page.waitForFunction((cell) => document.querySelector(cell)?.hasAttribute('data-pinned'), id('cell-scores-2-2'));
  assert.equal(await page.locator(id('pin-1')).count(), 0);
  await page.locator(id('cell-scores-2-2')).click();
  await becomes(page, 'data-pinned', 0);
  // An input's click is for typing.
  await page.locator(id('cell-X-0-0')).click();
  await page.waitForSelector('[data-selected]');
  assert.equal(await page.locator(id('pinned')).count(), 0);
  await page.locator(id('cell-out-0-1')).click();
  await page.locator(id('unpin')).click();
  await becomes(page, 'data-pinned', 0);
  assert.deepEqual(page.errors, []);
});

test('a pin in a link that is no cell is named', async () => {
  const page = await open(browser, server, '#/learn/three-tokens?v=1&pin=weights.1.0,nowhere');
  assert.match(await page.locator(id('banner-link')).textContent(), /pin=weights\.1\.0,nowhere/);
  assert.equal(await page.locator(id('pinned')).count(), 0);
});

for (const [look, options] of Object.entries(kLooks))
  test(`axe finds nothing with a chain pinned, the menus open and the plane drawn: ${look}`, async () => {
    const page = await open(browser, server, '#/learn/cat-chases-mouse?v=1&pin=out.1.1,weights.1.0&sel=weights.1.0', options);
    await becomes(page, 'data-pinned', 1);
    for (const name of ['export', 'copy', 'plane-open']) await page.locator(id(name)).click();
    await page.waitForSelector(id('plane'));
    await page.waitForSelector(id('export-npy'));
    await page.waitForSelector('.why math');
    assert.deepEqual(await findings(page), []);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  });
