// What the page of lessons costs to load: everything that it fetches before it can be used.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {join} from 'node:path';
import {test} from 'node:test';
import {gzipSync} from 'node:zlib';

import {open, root, workplace} from './browser.mjs';

// The goal is 150 kB; it was 541 kB with one module.
const kMost = 205_000;

const {browser, server} = await workplace();

test(`the page of lessons is at most ${kMost} bytes compressed`, async (context) => {
  await open(browser, server, '#/learn/three-tokens');
  const sizes = [...new Set(server.asked)].filter((path) => path !== '/favicon.ico').map((path) => {
    const file = path.endsWith('/') ? `${path}index.html` : path;
    return [file, gzipSync(readFileSync(join(root, 'build/web', file)), {level: 9}).length];
  });
  const sum = sizes.reduce((all, [, size]) => all + size, 0);
  context.diagnostic(`${sum} bytes: ${sizes.map(([file, size]) => `${file} ${size}`).join(', ')}`);
  assert.ok(sum <= kMost, `${sum} bytes`);
});
