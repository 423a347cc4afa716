// What the page gives to take along beside the command's texts: a picture, and one matrix.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {readFileSync} from 'node:fs';
import {join} from 'node:path';
import {test} from 'node:test';

import {command, downloaded, id, open, openMenu, serve, type, workplace} from './browser.mjs';

const {browser, server, folder} = await workplace();

function npy(...args) {
  const file = join(folder, 'theirs.npy');
  execFileSync(command, ['trace', ...args, '-o', file]);
  return readFileSync(file);
}

test('any matrix as .npy, after an edit: the bytes of the command', async () => {
  const page = await open(browser, server, '#/learn/three-tokens-causal');
  await type(page, 'cell-X-1-0', '1');
  const given = await downloaded(page, 'npy');
  assert.equal(given.name, 'three-tokens-causal-out.npy');
  assert.ok(given.bytes.equals(npy('three-tokens-causal', '--set', 'X[B]=1,1')));
  await page.locator(id('export-tensor')).selectOption('masked');
  assert.ok((await downloaded(page, 'npy')).bytes.equals(npy('three-tokens-causal', '--set', 'X[B]=1,1', '--steps', 'masked')));
  assert.deepEqual(page.errors, []);
  assert.deepEqual(page.foreign, []);
});

test('a case with heads gives all of them in one file', async () => {
  const page = await open(browser, server, '#/learn/two-heads');
  await openMenu(page, 'export');
  await page.locator(id('export-tensor')).selectOption('weights');
  assert.ok((await downloaded(page, 'npy')).bytes.equals(npy('two-heads', '--steps', 'weights')));
});

test('a PNG is the exported SVG at twice its size, with something on it', async () => {
  const page = await open(browser, server, '#/learn/three-tokens');
  const svg = (await downloaded(page, 'svg')).bytes.toString('utf8');
  const [, width, height] = /width="(\d+)" height="(\d+)"/.exec(svg);
  const {name, bytes} = await downloaded(page, 'png');
  assert.equal(name, 'three-tokens.png');
  assert.equal(bytes.subarray(0, 8).toString('latin1'), '\x89PNG\r\n\x1a\n');
  assert.deepEqual([bytes.readUInt32BE(16), bytes.readUInt32BE(20)], [2 * Number(width), 2 * Number(height)]);
  // Its colours: paper, ink, and the scale of the weights.
  const colours = await page.evaluate(async (base64) => {
    const image = new Image();
    image.src = `data:image/png;base64,${base64}`;
    await image.decode();
    const canvas = Object.assign(document.createElement('canvas'), {width: image.width, height: image.height});
    const context = canvas.getContext('2d');
    context.drawImage(image, 0, 0);
    const {data} = context.getImageData(0, 0, image.width, image.height), seen = new Set();
    for (let n = 0; n < data.length; n += 4) seen.add((data[n] << 16) | (data[n + 1] << 8) | data[n + 2]);
    return seen.size;
  }, bytes.toString('base64'));
  assert.ok(colours > 20, `${colours} colours`);
  assert.deepEqual(page.errors, []);
});

test('without the part that makes files the page says so and goes on', async () => {
  const cut = await serve({missing: /taking-.*\.js$/});
  const page = await open(browser, cut, '#/learn/three-tokens?v=1&e=X.1.0:1');
  await openMenu(page, 'export');
  await page.waitForSelector(`${id('banner-error')}[data-code="page-not-loaded"]`);
  assert.equal(await page.locator(id('cell-X-1-0')).getAttribute('data-text'), '1');
  cut.close();
});
