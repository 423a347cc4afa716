// The page for people who use a keyboard, a screen reader, large print or colours of their own.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import {findings, kLooks} from './axe.mjs';
import {addressOf, id, open, ready, shownText, workplace} from './browser.mjs';

const {browser, server} = await workplace();

const kStates = {
  'as given': '#/learn/three-tokens-causal',
  'edited': '#/learn/three-tokens?v=1&e=X.1.0:1&step=2&sel=weights.1.0',
  'a mistake': '#/learn/three-tokens-causal?v=1&mistake=mask-after',
  'by hand': '#/learn/cat-chases-mouse?v=1&mode=hand2',
  'refused': '#/learn/three-tokens?v=1&mask=rows:000/111/111&e=Y.0.0:1',
  'heads': '#/learn/two-heads',
};
for (const [look, options] of Object.entries(kLooks)) {
  test(`axe finds nothing: ${look}`, async () => {
    const page = await open(browser, server, '', options);
    for (const [state, fragment] of Object.entries(kStates)) {
      await page.goto(`${server.origin}/${fragment}`);
      await page.reload();
      await page.waitForSelector('[data-ready="true"]');
      assert.deepEqual(await findings(page), [], state);
    }
  });
}

test('at 320 px nothing but matrices scrolls sideways', async () => {
  const page = await open(browser, server, '#/learn/three-tokens-causal', kLooks['320 px']);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
});

test('an edit and a mask by keyboard alone, and what a screen reader says', async () => {
  const page = await open(browser, server, '#/learn/three-tokens');
  // Tab from the top until X's grid; then arrows.
  for (let n = 0; n < 40; ++n) {
    await page.keyboard.press('Tab');
    if (await page.evaluate(() => document.activeElement?.dataset?.testid === 'cell-X-0-0')) break;
  }
  await page.keyboard.press('ArrowDown');
  await page.keyboard.type('1');
  await page.keyboard.press('Enter');
  assert.equal(await page.locator(id('changed-count')).textContent(), '21 of 33 cells changed');
  const cell = page.locator(id('cell-weights-0-2'));
  await ready(page);
  assert.equal(await cell.getAttribute('aria-label'), 'weight, query A, key C, 0.3334′, was 0.4011');
  assert.match(await page.locator(id('live')).textContent(), /21 of 33 cells changed; row A sums to 1.0000/);
  await page.getByRole('button', {name: 'query A, key B: may attend'}).press('Space');
  assert.equal(await shownText(page, 'cell-weights-0-1'), '·');
  await page.keyboard.press('Control+z');
  await page.keyboard.press('Control+z');
  assert.equal(await shownText(page, 'cell-X-1-0'), '0');
});

test('single keys can be switched off and never act while somebody types', async () => {
  const page = await open(browser, server, '#/learn/three-tokens');
  await page.locator('h1').click();
  await page.keyboard.press('ArrowRight');
  assert.match(await addressOf(page), /step=1/);
  await page.locator(id('scale')).focus();
  await page.keyboard.press('ArrowRight');
  assert.match(await addressOf(page), /step=1/);
  await page.locator(id('keys')).uncheck();
  await page.locator('h1').click();
  await page.keyboard.press('ArrowRight');
  assert.match(await addressOf(page), /step=1/);
});

test('on an input every letter is typing, no command of the page', async () => {
  const page = await open(browser, server, '#/learn/three-tokens?v=1&e=X.1.0:1');
  const counted = page.locator(id('changed-count'));
  const before = await counted.textContent();
  await page.locator(id('cell-X-1-0')).focus();
  await page.keyboard.type('bc');
  assert.equal(await page.locator(id('edit-X.1.0')).inputValue(), 'bc');
  await page.keyboard.press('Enter');
  assert.match(await page.locator(id('cell-X-1-0')).textContent(), /not a finite number.*the old value 1 stays/);
  assert.equal(await counted.textContent(), before);
  await page.locator(id('cell-out-1-0')).focus();
  await page.keyboard.press('b');  // of a computed number it is one
  assert.equal(await page.locator(id('edit-X.1.0')).count(), 0);
  await page.locator(id('cell-X-1-0')).focus();
  await page.keyboard.type('-0.5');
  await page.keyboard.press('Enter');
  assert.equal(await shownText(page, 'cell-X-1-0'), '-0.5');
});

const inSight = (page, name) => page.locator(id(name)).evaluate((one) => {
  const {top, bottom} = one.getBoundingClientRect();
  return top >= 0 && bottom <= innerHeight;
});

for (const [width, height] of [[1280, 720], [320, 640]])
  test(`what explains a number is in sight beside it: ${width} px`, async () => {
    const page = await open(browser, server, '#/learn/three-tokens', {viewport: {width, height}});
    const cell = page.locator(id('cell-out-2-1'));
    await cell.focus();
    await page.locator(id('derived')).first().waitFor();
    assert.deepEqual([await inSight(page, 'derived'), await inSight(page, 'cell-out-2-1')], [true, true]);
    // A focused cell is not hidden by it.
    assert.ok(await cell.evaluate((one) => {
      const {left, top, width: wide, height: high} = one.getBoundingClientRect();
      return one.contains(document.elementFromPoint(left + wide / 2, top + high / 2));
    }));
    if (width > 960) return;
    await page.locator(id('why-close')).click();
    assert.equal(await page.locator(id('derived')).count(), 0);
    assert.doesNotMatch(await addressOf(page), /sel=/);
  });

test('with reduced motion nothing is animated', async () => {
  const page = await open(browser, server, '#/learn/three-tokens?v=1&e=X.1.0:1', {reducedMotion: 'reduce'});
  assert.equal(await page.evaluate(() => document.getAnimations().length), 0);
});
