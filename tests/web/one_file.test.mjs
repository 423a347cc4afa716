// The page as one file (glasshead trace --interactive): from disk and in frames, without a network.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {readFile, writeFile} from 'node:fs/promises';
import {join} from 'node:path';
import {test} from 'node:test';
import {pathToFileURL} from 'node:url';

import {command, download, downloaded, exact, id, root, shownText, type, watched, workplace} from './browser.mjs';

const {browser, folder} = await workplace();

const trace = (...words) => execFileSync(command, ['trace', ...words], {encoding: 'utf8'});

async function lesson(name, ...words) {
  const file = join(folder, name);
  trace(...words, '--interactive', '--web', join(root, 'build/web'), '-o', file);
  return file;
}

// A page with the network off; what it asks for and what goes wrong in it is kept.
async function open(file) {
  const context = await browser.newContext({offline: true, acceptDownloads: true});
  const page = watched(await context.newPage());
  await page.goto(pathToFileURL(file).href);
  return page;
}

const ready = (frame) => frame.waitForSelector('[data-ready="true"]');

test('it opens from disk, asks for nothing, and can be edited and exported', async () => {
  const file = await lesson('three.html', 'three-tokens');
  const page = await open(file);
  await ready(page);
  assert.equal(await page.locator('main').getAttribute('data-case'), 'three-tokens');
  await type(page, 'cell-X-1-0', '1');
  await page.waitForFunction((cell) => document.querySelector(cell)?.dataset.text === '0.3334′', id('cell-weights-0-2'));
  assert.ok(Math.abs(Number(await exact(page, 'cell-weights-0-2')) - 1 / 3) < 1e-15);
  assert.equal(await download(page, 'json'), trace('three-tokens', '--set', 'X[B]=1,1', '--format', 'json'));
  const npy = join(folder, 'out.npy');
  trace('three-tokens', '--set', 'X[B]=1,1', '-o', npy);
  assert.ok((await downloaded(page, 'npy')).bytes.equals(await readFile(npy)));
  assert.equal((await downloaded(page, 'png')).bytes.subarray(1, 4).toString('latin1'), 'PNG');
  await page.locator(id('plane-open')).click();
  await page.waitForSelector(id('plane'));
  assert.deepEqual(page.asked, [pathToFileURL(file).href]);
  assert.deepEqual(page.errors, []);
});

test('share gives what somebody who has the file can use, not where it lies here', async () => {
  const page = await open(await lesson('shared.html', 'three-tokens', '--set', 'X[B]=1,1'));
  await ready(page);
  await page.locator(id('share')).click();
  const status = `${id('share')} + [role=status]`;
  await page.waitForFunction((one) => document.querySelector(one).textContent !== '', status);
  const said = await page.locator(status).textContent();
  const clip = /^copied/.test(said) ? await page.evaluate(() => navigator.clipboard.readText().catch(() => '')) : said;
  assert.doesNotMatch(said + clip, /file:|\/tmp/);
  assert.match(said, /the file/);
});

test('it opens in the state of the flags', async () => {
  const page = await open(await lesson('state.html', 'three-tokens', '--set', 'X[B]=1,1', '--mask', 'causal'));
  await ready(page);
  assert.equal(await shownText(page, 'cell-X-1-0'), '1');
  assert.ok(Math.abs(Number(await exact(page, 'cell-out-1-0')) - 1) < 1e-15);
  assert.equal(await shownText(page, 'cell-out-2-1'), '0.8022');
  assert.deepEqual(page.errors, []);
});

test('a case of your own is in it, whatever its text holds', async () => {
  const mine = join(folder, 'mine.json');
  await writeFile(mine, JSON.stringify({
    schema: 'glasshead.case/1', title: '</script><b>"&', tokens: ['<i>', '\u2028'], X: [[1, 0], [0, 1]], attention: {},
  }));
  const page = await open(await lesson('mine.html', mine));
  await ready(page);
  assert.equal(await page.locator('main').getAttribute('data-case'), 'mine');
  assert.equal(await page.locator('main b:text("\\"&")').count(), 0);
  assert.equal(await download(page, 'json'), trace(mine, '--format', 'json'));
  assert.deepEqual(page.errors, []);
});

test('three in one notebook do not disturb each other', async () => {
  const names = ['three-tokens', 'one-query', 'three-tokens'];
  const frames = [];
  for (const [n, name] of names.entries()) {
    const text = await readFile(await lesson(`frame-${n}.html`, name), 'utf8');
    const escaped = text.replaceAll('&', '&amp;').replaceAll('"', '&quot;');
    frames.push(`<iframe sandbox="allow-scripts allow-downloads" srcdoc="${escaped}" style="width:100%;height:48em"></iframe>`);
  }
  const notebook = join(folder, 'notebook.html');
  await writeFile(notebook, `<!doctype html><meta charset="utf-8">${frames.join('\n')}`);
  const page = await open(notebook);
  const inside = page.frames().filter((frame) => frame !== page.mainFrame());
  assert.equal(inside.length, 3);
  for (const [n, frame] of inside.entries()) {
    await ready(frame);
    assert.equal(await frame.locator('main').getAttribute('data-case'), names[n]);
  }
  const [first, , third] = inside;
  const cell = first.locator(id('cell-X-1-0'));
  await cell.focus();
  await page.keyboard.press('Enter');
  await page.keyboard.press('Control+A');
  await page.keyboard.type('1');
  await page.keyboard.press('Enter');
  await first.waitForFunction((wanted) => document.querySelector(wanted)?.dataset.text === '0.3334′', id('cell-weights-0-2'));
  assert.equal(await third.locator(id('cell-X-1-0')).getAttribute('data-text'), '0');
  assert.equal(await third.locator(id('cell-weights-0-2')).getAttribute('data-text'), '0.4011');
  assert.deepEqual(page.asked.filter((url) => url !== pathToFileURL(notebook).href && url !== 'about:srcdoc'), []);
  assert.deepEqual(page.errors, []);
});
