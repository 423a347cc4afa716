// States that the address holds in other ways than plain edits: many edits, and the doctor's.
import assert from 'node:assert/strict';
import {writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {test} from 'node:test';

import {addressOf, id, open, serve, shownText, type, workplace} from './browser.mjs';

const {browser, server, folder} = await workplace();

// The 48 cells of three 4 x 4 matrices.
const many = ['W_Q', 'W_K', 'W_V'].flatMap((matrix) =>
  Array.from({length: 16}, (_, n) => `${matrix}.${n >> 2}.${n & 3}:${n}.5`));
const allSet = (page) => page.evaluate((edits) => edits.filter((edit) => {
  const [place, text] = edit.split(':'), [matrix, i, j] = place.split('.');
  return document.querySelector(`[data-testid="cell-${matrix}-${i}-${j}"]`)?.dataset.text === text;
}).length, many);

test('more than 40 edits are packed in the address, a reload restores them all, and undo unpacks them', async () => {
  const page = await open(browser, server, `#/learn/two-heads?v=1&e=${many.join(',')}&mask=causal`);
  assert.equal(await allSet(page), many.length);
  await page.waitForFunction(() => /[?&]z=/.test(location.hash));
  assert.match(await addressOf(page), /#\/learn\/two-heads\?v=1&z=[\w-]+&mask=causal$/);
  const packed = /z=[\w-]+/.exec(await addressOf(page))[0];
  await type(page, 'cell-X-0-0', '0.5');
  // The chosen cell is in the address at once, the edits when they are packed.
  await page.waitForFunction((old) => location.href.includes('z=') && !location.href.includes(old), packed);
  await page.reload();
  await page.waitForSelector('[data-ready="true"]');
  assert.equal(await allSet(page), many.length);
  assert.equal(await shownText(page, 'cell-X-0-0'), '0.5');
  assert.equal(await page.locator(id('mask-mode')).inputValue(), 'causal');
  await page.locator(id('reset')).click();
  await page.waitForFunction(() => !/[?&][ze]=/.test(location.hash));
  assert.deepEqual(page.errors, []);
});

test('while a number slides the address is written now and then, and in the end it holds the last', async () => {
  const page = await open(browser, server, '#/learn/three-tokens');
  await page.locator(id('cell-X-1-0')).focus();
  const {written, took} = await page.locator(id('slider')).evaluate(async (input) => {
    const replace = history.replaceState, start = performance.now();
    let written = 0;
    history.replaceState = (...all) => {
      ++written;
      replace.apply(history, all);
    };
    for (let n = 1; n <= 20; ++n) {
      input.value = String(20 + n);
      input.dispatchEvent(new Event('input', {bubbles: true}));
      await new Promise((done) => { requestAnimationFrame(() => { setTimeout(done); }); });
    }
    return {written, took: performance.now() - start};
  });
  assert.ok(written <= 2 + took / 200, `${written} times in ${took} ms`);
  await page.waitForFunction(() => /[?&]e=X\.1\.0:2(&|$)/.test(location.hash));
  assert.deepEqual(page.errors, []);
});

test('an address that is opened is not written over by that of an edit just before', async () => {
  const page = await open(browser, server, '#/learn/three-tokens');
  await page.locator(id('cell-X-1-0')).focus();
  await page.locator(id('slider')).evaluate((input) => {
    const slide = (to) => {
      input.value = String(to);
      input.dispatchEvent(new Event('input', {bubbles: true}));
    };
    slide(21);
    window.dispatchEvent(new Event('pagehide'));  // written, so that the next waits
    slide(22);
    location.hash = '#/learn/one-query';
    window.dispatchEvent(new Event('pagehide'));
  });
  await page.locator('main[data-case="one-query"]').waitFor();
  assert.deepEqual(page.errors, []);
});

test('edits that are not yet in the address are when the page is left', async () => {
  const page = await open(browser, server, `#/learn/two-heads?v=1&e=${many.join(',')}`);
  await page.waitForFunction(() => /[?&]z=/.test(location.hash));
  await page.locator(id('cell-X-0-0')).focus();
  const left = await page.evaluate(() => {
    document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: '7', bubbles: true, cancelable: true}));
    document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true, cancelable: true}));
    window.dispatchEvent(new Event('pagehide'));
    return location.hash;
  });
  assert.match(left, /[?&]e=(?:[^&]*,)?X\.0\.0:7(?:,|&|$)/);
});

test('a broken z is named, and the rest of the link is understood', async () => {
  const page = await open(browser, server, '#/learn/three-tokens?v=1&z=AAAA&mask=causal');
  assert.match(await page.locator(id('banner-link')).textContent(), /z \(it can’t be unpacked\)/);
  assert.equal(await page.locator(id('mask-mode')).inputValue(), 'causal');
});

test('where what unpacks a link can\'t be loaded, the link keeps its edits', async () => {
  const first = await open(browser, server, `#/learn/two-heads?v=1&e=${many.join(',')}`);
  await first.waitForFunction(() => /[?&]z=/.test(location.hash));
  const fragment = new URL(await addressOf(first)).hash, z = /z=[\w-]+/.exec(fragment)[0];
  const cut = await serve({missing: /packed-.*\.js$/});
  const page = await open(browser, cut, fragment);
  assert.match(await page.locator(id('banner-link')).textContent(), /could not be loaded/);
  assert.ok((await addressOf(page)).includes(z));
  cut.close();
});

const settled = (page) => page.waitForSelector('main[data-page="doctor"][data-ready="true"]');
const told = async (page) => {
  await page.locator(id('doctor-verdict')).waitFor();
  return page.locator('.lines').textContent();
};

async function openDoctor(fragment = '#/doctor') {
  const page = await open(browser, server, fragment);
  await page.waitForSelector(id('doctor-drop'));
  await settled(page);
  return page;
}

async function paste(page, text, role) {
  await page.locator(id('doctor-paste')).fill(text);
  await page.locator(id('paste-role')).selectOption(role);
  await page.locator(id('doctor-paste-add')).click();
  await settled(page);
}

test('what the doctor was given stands in the address, and a reload gives the same verdict', async () => {
  const page = await openDoctor();
  await page.locator(id('doctor-case')).selectOption('three-tokens-causal');
  await settled(page);
  await paste(page, '1 0 0; .5 .5 0; .25 .25 .5', 'weights');
  await page.locator(id('option-decimals')).fill('2');
  await page.locator(id('option-decimals')).press('Enter');
  await settled(page);
  const words = await told(page);
  assert.match(words, /0\.3302/);
  assert.equal(new URL(await addressOf(page)).hash, '#/doctor?v=1&case=three-tokens-causal&pasted.weights=1+0+0;+.5+.5+0;+.25+.25+.5&decimals=2');
  assert.equal(await page.locator(id('doctor-kept')).getAttribute('data-kept'), 'address');
  await page.reload();
  await settled(page);
  assert.equal(await told(page), words);
  // To a lesson and back: nothing is lost.
  await page.locator(id('page-learn')).click();
  await page.waitForSelector(id('cell-weights-0-0'));
  await page.locator(id('page-doctor')).click();
  assert.equal(await told(page), words);
  assert.match(await addressOf(page), /pasted\.weights=1/);
  await page.locator(id('doctor-clear')).click();
  await page.waitForFunction(() => location.hash === '#/doctor?v=1');
  assert.deepEqual(page.errors, []);
  assert.deepEqual(page.foreign, []);
});

test('files are named in a link, which asks for them again, with the roles that were chosen', async () => {
  const header = "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 3), }".padEnd(117) + '\n';
  const numbers = Buffer.from(new Float64Array([1, 0, 0, .5, .5, 0, .25, .25, .5]).buffer);
  const file = join(folder, 'a.npy');
  writeFileSync(file, Buffer.concat([Buffer.from('\x93NUMPY\x01\x00\x76\x00', 'latin1'), Buffer.from(header), numbers]));
  const page = await openDoctor('#/doctor?v=1&case=three-tokens-causal');
  await page.locator(id('doctor-files')).setInputFiles([file]);
  await settled(page);
  await page.locator(id('role-a.npy')).selectOption('weights');
  await settled(page);
  const words = await told(page);
  assert.equal(new URL(await addressOf(page)).hash, '#/doctor?v=1&case=three-tokens-causal&needs=a.npy&is.a.npy=weights');
  assert.match(await page.locator(id('doctor-kept')).textContent(), /only the names: a\.npy/);
  await page.reload();
  await settled(page);
  assert.match(await page.locator(id('doctor-needs')).textContent(), /a\.npy/);
  await page.locator(id('doctor-files')).setInputFiles([file]);
  await settled(page);
  assert.equal(await told(page), words);
  assert.equal(await page.locator(id('doctor-needs')).count(), 0);
});

test('what is too long for a link is said to be, and stays on the page', async () => {
  const page = await openDoctor('#/doctor?v=1&case=three-tokens-causal&scale=0.5&later=1');
  const row = Array(60).fill('0.1234567').join(' ');
  await paste(page, Array(60).fill(row).join('\n'), 'out');
  assert.equal(await page.locator(id('doctor-kept')).getAttribute('data-kept'), 'too-long');
  assert.match(await page.locator(id('doctor-kept')).textContent(), /pasted out: too long for a link/);
  assert.equal(new URL(await addressOf(page)).hash, '#/doctor?v=1&case=three-tokens-causal&needs=pasted+out&scale=0.5&later=1');
  assert.equal(await page.locator(id('remove-pasted out')).count(), 1);
  // Opened again, the link asks for it.
  await page.reload();
  await settled(page);
  assert.match(await page.locator(id('doctor-needs')).textContent(), /pasted out/);
  await paste(page, '1 2; 3 4; 5 6', 'out');
  assert.equal(await page.locator(id('doctor-needs')).count(), 0);
  assert.equal(new URL(await addressOf(page)).hash, '#/doctor?v=1&case=three-tokens-causal&pasted.out=1+2;+3+4;+5+6&scale=0.5&later=1');
});

test('a mangled link to the doctor gives a banner, and what is right of it', async () => {
  const page = await openDoctor('#/doctor?v=9&case=no-such-case&causal=perhaps&window=2,0&%zz');
  const words = await page.locator(id('banner-link')).textContent();
  for (const part of ['v=9 (the link is from a newer version of this page)', 'the case no-such-case', 'causal=perhaps', '%zz']) assert.ok(words.includes(part), words);
  assert.equal(await page.locator(id('option-window')).inputValue(), '2,0');
  assert.deepEqual(page.errors, []);
});
