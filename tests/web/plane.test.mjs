// Embeddings as points, and formulas as MathML.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import {addressOf, id, open, shownText, type, workplace} from './browser.mjs';

const {browser, server} = await workplace();

async function openPlane(fragment) {
  const page = await open(browser, server, fragment);
  await page.locator(id('plane-open')).click();
  await page.waitForSelector(id('plane'));
  return page;
}

test('words are points with the case\'s axes, arrows lead to the outputs, and an edit moves both', async () => {
  const page = await openPlane('#/learn/cat-chases-mouse');
  const label = () => page.locator(id('plane')).getAttribute('aria-label');
  assert.equal(await label(), 'cat (1, 0); chases (0.2, 1); mouse (0.8, 0); quickly (0, 0.5); sleeping (0, 0); '
    + 'cat becomes (1, 0); chases becomes (0.4846, 0.6443); mouse becomes (0.7282, 0.2515)');
  assert.deepEqual(await page.locator('.plane .name').allTextContents(), ['animality', 'action']);
  assert.equal(await page.locator('.plane .arrow').count(), 2);  // cat stays where it is
  await type(page, 'cell-E-1-0', '0.6');
  await page.waitForFunction((word) => document.querySelector(word)?.dataset.text === '(0.6, 1)', id('plane-chases'));
  assert.match(await label(), /chases \(0\.6, 1\)/);
  assert.deepEqual(page.errors, []);
});

test('a word is dragged by steps of 0.1; all of it is one change', async () => {
  const page = await openPlane('#/learn/cat-chases-mouse');
  const word = page.locator(`${id('plane-mouse')} .grip`);
  await word.scrollIntoViewIfNeeded();
  const {x, y, width, height} = await word.boundingBox(), size = (await page.locator(id('plane')).boundingBox()).width;
  const unit = size / 1.4;  // the picture is 1.4 units wide
  await page.mouse.move(x + width / 2, y + height / 2);
  await page.mouse.down();
  await page.mouse.move(x + width / 2 - 0.1 * unit, y + height / 2 - 0.1 * unit);
  await page.mouse.move(x + width / 2 - 0.3 * unit, y + height / 2 - 0.5 * unit, {steps: 4});
  await page.mouse.up();
  assert.equal(await shownText(page, 'cell-E-2-0'), '0.5');
  assert.equal(await shownText(page, 'cell-E-2-1'), '0.5');
  assert.match(await addressOf(page), /[?&]e=E\.2\.0:0\.5,E\.2\.1:0\.5/);
  await page.locator(id('undo')).click();
  assert.equal(await shownText(page, 'cell-E-2-0'), '0.8');
  assert.equal(await shownText(page, 'cell-E-2-1'), '0');
  assert.ok(await page.locator(id('undo')).isDisabled());
});

test('axes are renamed, and the address keeps their names', async () => {
  const page = await openPlane('#/learn/three-tokens');
  await page.locator(id('axis-1')).fill('verb, or not');
  await page.locator(id('axis-1')).press('Enter');
  await page.locator(id('axis-1')).blur();
  assert.deepEqual(await page.locator('.plane .name').allTextContents(), ['', 'verb  or not']);
  assert.match(await addressOf(page), /axes=/);
  await page.reload();
  await page.locator(id('plane-open')).click();
  await page.waitForSelector(id('plane'));
  assert.deepEqual(await page.locator('.plane .name').allTextContents(), ['', 'verb  or not']);
});

test('directions are arrows from the middle', async () => {
  const page = await openPlane('#/learn/analogy');
  assert.equal(await page.locator('.plane .arrow').count(), 2);
  assert.match(await page.locator(id('plane')).getAttribute('aria-label'), /difference \(0, -0\.6000\); difference \(0\.1000, -0\.6000\)$/);
});

test('a formula is text until a number is chosen, then MathML, drawn with a bar and with room', async () => {
  const page = await open(browser, server, '#/learn/three-tokens');
  assert.equal(await page.locator('math').count(), 0);
  await page.locator(id('cell-weights-1-0')).focus();
  await page.waitForSelector('.why mfrac');
  const fraction = await page.locator('.why mfrac').evaluate((one) => {
    const [over, under] = [...one.children].map((part) => part.getBoundingClientRect());
    return {isMathML: one.namespaceURI === 'http://www.w3.org/1998/Math/MathML', isAbove: over.bottom <= under.top + 1, words: one.textContent};
  });
  assert.deepEqual(fraction, {isMathML: true, isAbove: true, words: 'El'});
  assert.ok(await page.locator('h2 math msup').count() > 0);
  assert.deepEqual(page.errors, []);
});
