// What the page of lessons costs to load: everything that it fetches until a number was changed in it. The engine's
// module comes packed, so that gzip gains nothing there.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {join} from 'node:path';
import {test} from 'node:test';
import {gzipSync} from 'node:zlib';

import {id, open, root, type, workplace} from './browser.mjs';

const kMost = 150_000, kMostInOneFile = 350_000;

const {browser, server} = await workplace();

test(`the page of lessons is at most ${kMost} bytes compressed`, async (context) => {
  const page = await open(browser, server, '#/learn/three-tokens');
  await type(page, 'cell-X-1-0', '1');
  await page.waitForFunction((cell) => document.querySelector(cell)?.dataset.text === '0.3334′', id('cell-weights-0-2'));
  const sizes = [...new Set(server.asked)].filter((path) => path !== '/favicon.ico').map((path) => {
    const file = path.endsWith('/') ? `${path}index.html` : path;
    return [file, gzipSync(readFileSync(join(root, 'build/web', file)), {level: 9}).length];
  });
  const sum = sizes.reduce((all, [, size]) => all + size, 0);
  context.diagnostic(`${sum} bytes: ${sizes.map(([file, size]) => `${file} ${size}`).join(', ')}`);
  assert.ok(sum <= kMost, `${sum} bytes`);
});

test(`the page as one file is at most ${kMostInOneFile} bytes`, (context) => {
  const {length} = readFileSync(join(root, 'build/web/lesson.html'));
  context.diagnostic(`${length} bytes`);
  assert.ok(length <= kMostInOneFile, `${length} bytes`);
});
