// The page that `glasshead view` serves: its token, its cases, and what happens when it is gone.
import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import {readFile, writeFile} from 'node:fs/promises';
import {join} from 'node:path';
import {createInterface} from 'node:readline';
import {test} from 'node:test';

import {addressOf, command, id, root, shownText, type, watched, workplace} from './browser.mjs';

const {browser, folder} = await workplace();

async function serve(...words) {
  const process = spawn(command, ['view', '--no-open', '--web', join(root, 'build/web'), ...words], {stdio: ['ignore', 'pipe', 'ignore']});
  const ended = new Promise((done) => process.on('exit', done));
  const lines = createInterface({input: process.stdout});
  const address = await new Promise((done) => lines.once('line', done));
  return {address, origin: new URL(address).origin, token: /token=([0-9a-f]{32})$/.exec(address)[1],
          end: () => { process.kill('SIGTERM'); return ended; }};
}

async function open(address) {
  const context = await browser.newContext();
  const page = watched(await context.newPage());
  await page.goto(address);
  await page.waitForSelector('[data-ready="true"]');
  return page;
}

test('the page opens with the case, and keeps the token out of the address', async () => {
  const mine = join(folder, 'mine.json');
  const text = await readFile(join(root, 'cases/three-tokens.json'), 'utf8');
  await writeFile(mine, text.replace('three tokens, no mask', 'my own three tokens'));
  const server = await serve(mine);
  try {
    const page = await open(server.address);
    assert.equal(await page.locator('main').getAttribute('data-case'), 'mine');
    assert.ok((await page.locator('h1').textContent()).length > 0);
    assert.doesNotMatch(await addressOf(page), /token|[0-9a-f]{32}/);
    await type(page, 'cell-X-1-0', '1');
    await page.waitForFunction((cell) => document.querySelector(cell)?.dataset.text === '0.3334′', id('cell-weights-0-2'));
    assert.doesNotMatch(await addressOf(page), /token|[0-9a-f]{32}/);
    await page.reload();
    await page.waitForSelector('[data-ready="true"]');
    assert.equal(await page.locator('main').getAttribute('data-case'), 'mine');
    assert.equal(await shownText(page, 'cell-weights-0-2'), '0.3334′');
    assert.deepEqual(page.errors, []);
  } finally {
    assert.equal(await server.end(), 0);
  }
});

test('when the server is gone the page goes on, and no edit is lost', async () => {
  const server = await serve('three-tokens');
  const page = await open(server.address);
  await type(page, 'cell-X-1-0', '1');
  assert.equal(await server.end(), 0);
  await page.waitForFunction((cell) => document.querySelector(cell)?.dataset.text === '0.3334′', id('cell-weights-0-2'));
  await type(page, 'cell-X-0-1', '1');
  await page.waitForFunction((cell) => document.querySelector(cell)?.dataset.text === '1', id('cell-X-0-1'));
  assert.match(await addressOf(page), /e=X\.1\.0:1,X\.0\.1:1/);
});

test('another origin gets nothing, whatever it knows', async () => {
  const server = await serve('three-tokens'), other = await serve();
  try {
    const page = await open(other.address);
    const tried = await page.evaluate(async ({origin, token}) => {
      const ask = async (path, options) => {
        try {
          const response = await fetch(`${origin}/${path}`, options);
          return {type: response.type, text: await response.text()};
        } catch (error) {
          return String(error);
        }
      };
      const headers = {'Glasshead-Token': token, 'Content-Type': 'application/json'};
      return [await ask('api/v1/info', {headers}), await ask('api/v1/trace', {method: 'POST', headers, body: '{}'}),
              await ask('', {}), await ask('index.html', {mode: 'no-cors'})];
    }, {origin: server.origin, token: server.token});
    for (const answer of tried) assert.ok(typeof answer === 'string' || answer.text === '', JSON.stringify(answer));
  } finally {
    await server.end();
    await other.end();
  }
});
