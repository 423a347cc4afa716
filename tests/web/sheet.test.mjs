// A sheet of one's own, in Chromium: made, pasted into, kept in its address.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {readFileSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {test} from 'node:test';

import {findings, kLooks} from './axe.mjs';
import {addressOf, command, download, id, open, shownText, texts, type, workplace} from './browser.mjs';

const {browser, server, folder} = await workplace();

const quiet = (page) => {
  assert.deepEqual(page.errors, []);
  assert.deepEqual(page.foreign, []);
};

async function openSheet(fragment = '#/sheet', options = {}) {
  const page = await open(browser, server, fragment, options);
  await page.waitForSelector(id('sheet-tokens'));
  return page;
}

const settled = (page) => page.waitForSelector(`${id('sheet')}[aria-busy="false"]`);

async function fill(page, matrix, text) {
  await page.locator(id('sheet-matrix')).selectOption(matrix);
  await page.locator(id('sheet-paste')).fill(text);
  await page.locator(id('sheet-fill')).click();
  await settled(page);
}

async function set(page, name, text) {
  await page.locator(id(name)).fill(text);
  await page.locator(id(name)).press('Enter');
  await page.locator(id(name)).blur();
  await settled(page);
}

// Clipboards are not a test's to write, so the event that a paste makes is sent.
const pasteOnto = (page, name, text) => page.locator(id(name)).evaluate((cell, block) => {
  const data = new DataTransfer();
  data.setData('text/plain', block);
  cell.dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true}));
}, text);

test('the tutorial\'s three tokens from a blank sheet: the same steps, undo, exports and address', async () => {
  const page = await openSheet();
  assert.equal(await shownText(page, 'cell-X-0-0'), '0');
  await fill(page, 'X', '1\t0\n0\t1\n1\t1');
  await page.waitForSelector(`${id('cell-X-2-1')}[data-text="1"]`);
  assert.deepEqual(await texts(page, [0, 1, 2].map((j) => `cell-weights-0-${j}`)), ['0.4011', '0.1978', '0.4011']);
  await page.locator(id('mask-mode')).selectOption('causal');
  assert.deepEqual(await texts(page, ['cell-out-1-0', 'cell-out-1-1']), ['0.3302', '0.6698']);
  await type(page, 'cell-X-1-0', '1');
  assert.equal(await shownText(page, 'cell-out-2-1'), '0.8022');
  const json = await download(page, 'json'), url = await addressOf(page);
  assert.match(url, /#\/sheet\?v=1&case=/);
  assert.equal(await page.locator(id('sheet-kept')).getAttribute('data-kept'), 'address');
  await page.reload();
  await page.waitForSelector(id('sheet-tokens'));
  assert.equal(await download(page, 'json'), json);

  // What is saved is a case that the command traces to the same numbers.
  const [file] = await Promise.all([page.waitForEvent('download'), page.locator(id('sheet-save')).click()]);
  const path = join(folder, 'sheet.json');
  await file.saveAs(path);
  const {weights} = JSON.parse(execFileSync(command, ['trace', path, '--mask', 'causal', '--format', 'json'], {encoding: 'utf8'}));
  assert.deepEqual(weights, JSON.parse(json).weights);
  quiet(page);
});

test('undo and redo bring back numbers and sizes alike', async () => {
  const page = await openSheet();
  await type(page, 'cell-X-0-0', '2');
  await set(page, 'sheet-rows', '4');
  await page.waitForSelector(id('cell-X-3-1'));
  assert.equal(await shownText(page, 'cell-X-0-0'), '2');
  assert.equal(await page.locator(id('sheet-tokens')).inputValue(), 'A, B, C, D');
  await page.locator(id('undo')).click();
  assert.equal(await page.locator(id('cell-X-3-1')).count(), 0);
  assert.equal(await shownText(page, 'cell-X-0-0'), '2');
  await page.locator(id('undo')).click();
  assert.equal(await shownText(page, 'cell-X-0-0'), '0');
  await page.locator(id('redo')).click();
  await page.locator(id('redo')).click();
  assert.equal(await shownText(page, 'cell-X-0-0'), '2');
  await page.waitForSelector(id('cell-X-3-1'));
  quiet(page);
});

test('a block pasted onto a cell fills from there on, and grows the matrix', async () => {
  const page = await openSheet();
  await pasteOnto(page, 'cell-X-1-1', '0.5\t2\n.25\t3');
  await page.waitForSelector(id('cell-X-0-2'));
  assert.deepEqual(await texts(page, ['cell-X-0-2', 'cell-X-1-1', 'cell-X-1-2', 'cell-X-2-1', 'cell-X-2-2']), ['0', '0.5', '2', '0.25', '3']);
  // W_Q grew with X by a row of its identity's.
  assert.deepEqual(await texts(page, ['cell-W_Q-2-0', 'cell-W_Q-2-1']), ['0', '0']);
  quiet(page);
});

test('q, k, v themselves: as X gave them, then with more keys than queries', async () => {
  const page = await openSheet();
  await fill(page, 'X', 'A;1;0\nB;0;1\nC;1;1');
  await page.waitForSelector(`${id('cell-X-2-1')}[data-text="1"]`);
  await page.locator(id('sheet-kind')).selectOption('qkv');
  await page.waitForSelector(id('sheet-keys'));
  assert.deepEqual(await texts(page, [0, 1, 2].map((j) => `cell-weights-0-${j}`)), ['0.4011', '0.1978', '0.4011']);
  await fill(page, 'q', '[[1, 0]]');
  await page.waitForFunction(() => document.querySelector('[data-testid="sheet-tokens"]').value === 'A');
  await fill(page, 'v', 'np.array([[2, 0], [0, 2], [1, 1]])');
  await page.waitForSelector(`${id('cell-v-1-1')}[data-text="2"]`);
  assert.deepEqual(await texts(page, ['cell-out-0-0', 'cell-out-0-1']), ['1.2033', '0.7967']);
  quiet(page);
});

const banner = async (page) => {
  const said = page.locator(id('banner-sheet'));
  await said.waitFor();
  return [await said.getAttribute('data-code'), await said.textContent()];
};

test('what can\'t be read is refused with a reason, and nothing is lost', async () => {
  const page = await openSheet();
  await type(page, 'cell-X-0-0', '2');
  for (const [text, why] of [
    ['0,5\t1\n1\t0', /'0,5', a decimal comma; a point is needed: 0\.5/], ['0,5;0,25\n1;0', /decimal comma/],
    ['0,5 0,25\n1 0', /may be one number with a decimal comma or two numbers/], ['1 2\n3', /row 2 has 1 numbers/],
    ['[[1, 2], [3, ...]]', /left out/], ['1 x', /'x', which is no number/], ['[[1, 2], [3]]', /one list has 1 entries/],
    ['nan 1', /nan is not finite/], [`${'1 '.repeat(17)}`, /1×17; a sheet has at most 16×16/],
  ]) {
    await fill(page, 'X', text);
    const [name, said] = await banner(page);
    assert.equal(name, 'numbers-unclear');
    assert.match(said, why);
    assert.equal(await shownText(page, 'cell-X-0-0'), '2', text);
    await page.getByRole('button', {name: 'Close'}).click();
  }
  await set(page, 'sheet-rows', '17');
  const [name, said] = await banner(page);
  assert.equal(name, 'sheet-refused');
  assert.match(said, /1 to 16/);
  quiet(page);
});

test('CSV, .npy and a case come in as files', async () => {
  const page = await openSheet();
  const csv = join(folder, 'x.csv'), broken = join(folder, 'broken.npy'), json = join(folder, 'mine.json');
  writeFileSync(csv, 'token,animality,action\ncat,1,0\nchases,.2,1\nmouse,.8,0\n');
  await page.locator(id('sheet-matrix')).selectOption('X');
  await page.locator(id('sheet-file')).setInputFiles(csv);
  await page.waitForSelector(`${id('cell-X-1-0')}[data-text=".2"], ${id('cell-X-1-0')}[data-text="0.2"]`);
  await page.waitForFunction(() => document.querySelector('[data-testid="sheet-tokens"]').value === 'cat, chases, mouse');
  assert.deepEqual(await texts(page, ['cell-scores-0-1', 'cell-scores-2-0']), ['0.2000', '0.8000']);

  const numbers = join(folder, 'x.npy');
  execFileSync(command, ['trace', 'three-tokens', '--steps', 'weights', '-o', numbers]);
  await page.locator(id('sheet-file')).setInputFiles(numbers);
  await page.waitForSelector(id('cell-X-2-2'));

  writeFileSync(broken, 'not an array');
  await page.locator(id('sheet-file')).setInputFiles(broken);
  assert.equal((await banner(page))[0], 'file-broken');
  await page.getByRole('button', {name: 'Close'}).click();

  writeFileSync(json, readFileSync(new URL('../../cases/two-heads.json', import.meta.url)));
  await page.locator(id('sheet-file')).setInputFiles(json);
  await page.waitForSelector(id('cell-weights-h1-2-0'));
  writeFileSync(json, '{"schema":"glasshead.case/1"');
  await page.locator(id('sheet-file')).setInputFiles(json);
  assert.equal((await banner(page))[0], 'case-broken');
  quiet(page);
});

test('a sheet too long for an address says that it is a file\'s to keep', async () => {
  const page = await openSheet();
  const rows = Array.from({length: 16}, (_, i) => Array.from({length: 16}, (_, j) => `0.${i}12345678901234${j}`).join('\t')).join('\n');
  for (const matrix of ['X', 'W_Q', 'W_K', 'W_V']) await fill(page, matrix, rows);
  await page.waitForSelector(`${id('sheet-kept')}[data-kept="file"]`);
  assert.match(await page.locator(id('sheet-kept')).textContent(), /save it as a case/);
  assert.ok((await addressOf(page)).length < 200);
  quiet(page);
});

test('an address whose sheet is broken gives a blank one and says why', async () => {
  const page = await openSheet('#/sheet?v=1&case=%7B%22schema%22:1');
  const said = page.locator(id('banner-link'));
  await said.waitFor();
  assert.match(await said.textContent(), /Link partly understood.*the sheet’s case/);
  assert.equal(await shownText(page, 'cell-X-0-0'), '0');
});

for (const [look, options] of Object.entries(kLooks)) {
  test(`axe finds nothing on a sheet: ${look}`, async () => {
    const page = await openSheet('#/sheet?v=1&mask=causal', {...options, reducedMotion: 'reduce'});
    await fill(page, 'X', '0,5\t1');
    await banner(page);
    assert.deepEqual(await findings(page), []);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'only matrices scroll sideways');
  });
}
