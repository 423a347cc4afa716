// The built page (build/web) on a server of its own, in Debian's Chromium.
import {createServer} from 'node:http';
import {mkdtemp, readFile, rm} from 'node:fs/promises';
import {existsSync} from 'node:fs';
import {createRequire} from 'node:module';
import {tmpdir} from 'node:os';
import {extname, join, normalize} from 'node:path';
import {after, afterEach} from 'node:test';
import {fileURLToPath} from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));
const require = createRequire(join(root, 'web/package.json'));
const {chromium} = require('playwright-core');
export const axePath = require.resolve('axe-core/axe.min.js');
export const command = process.env.GLASSHEAD ?? join(root, 'build/release/bin/glasshead');

const kTypes = {
  '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css',
};

// SLOW=6 in the environment: as on a machine six times slower, with every file up to half a second late; for finding what
// a test does not wait for.
const kSlow = Number(process.env.SLOW ?? 1);
// How long anything is waited for: a machine that builds beside the tests is slow, not broken.
const kPatience = 120_000;  // ms
const late = () => new Promise((done) => { setTimeout(done, kSlow > 1 ? Math.random() * 500 : 0); });

// `broken`: the engine's modules come as these bytes instead, or those that `onlyBroken` names. `missing`: files that are not there.
// `inHead`: stands in the page's head.
export async function serve({broken, onlyBroken = /\.lzma$/, missing, inHead = ''} = {}) {
  const folder = join(root, 'build/web');
  const asked = [];
  const server = createServer(async (request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, 'http://x').pathname));
    asked.push(path);
    const file = join(folder, path.endsWith('/') ? `${path}index.html` : path);
    await late();
    try {
      if (missing?.test(file)) throw new Error('missing');
      let bytes = broken && file.endsWith('.lzma') && onlyBroken.test(file) ? Buffer.from(broken) : await readFile(file);
      if (inHead && file.endsWith('.html')) bytes = Buffer.from(bytes.toString('utf8').replace('</head>', () => `${inHead}</head>`));
      response.writeHead(200, {'Content-Type': kTypes[extname(file)] ?? 'application/octet-stream'});
      response.end(bytes);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return {origin: `http://127.0.0.1:${server.address().port}`, asked, close: () => server.close()};
}

export async function launch(more = []) {
  const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find(existsSync);
  if (!executablePath) throw new Error('no Chromium: apt-get install chromium');
  return chromium.launch({executablePath, args: ['--no-sandbox', '--disable-gpu', ...more]});
}

// What the tests of a file share, gone when they are done: a browser, the built page on a server (`serve`
// has its options), a folder to write in. A test's pages are closed with it. `flags`: the browser's.
export async function workplace({flags, ...served} = {}) {
  const [browser, server, folder] = await Promise.all([launch(flags), serve(served), mkdtemp(join(tmpdir(), 'glasshead-web-'))]);
  afterEach(() => Promise.all(browser.contexts().map((context) => context.close())));
  after(async () => {
    await browser.close();
    server.close();
    await rm(folder, {recursive: true});
  });
  return {browser, server, folder};
}

// What goes wrong in a page is kept in `errors`, what it asks for in `asked`.
export function watched(page) {
  page.setDefaultTimeout(kPatience);
  page.errors = [];
  page.asked = [];
  page.on('pageerror', (error) => page.errors.push(String(error)));
  page.on('console', (message) => { if (message.type() === 'error') page.errors.push(message.text()); });
  page.on('request', (request) => { if (!/^(data|blob):/.test(request.url())) page.asked.push(request.url()); });
  if (kSlow > 1)
    void page.context().newCDPSession(page).then((debug) => debug.send('Emulation.setCPUThrottlingRate', {rate: kSlow})).catch(() => {});
  return page;
}

export const id = (name) => `[data-testid="${name}"]`;

// A page opened at an address, ready, and watched; what it asked of other origins is in `foreign`.
export async function open(browser, server, fragment = '', options = {}) {
  const context = await browser.newContext({viewport: {width: 1280, height: 900}, acceptDownloads: true, ...options});
  const page = watched(await context.newPage());
  page.foreign = [];
  page.on('request', (request) => { if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(server.origin)) page.foreign.push(request.url()); });
  await page.goto(`${server.origin}/${fragment}`);
  await ready(page);
  return page;
}

// The page writes its address after the frame that shows a change, but not at once after another, or when it is left. What
// page.url() says may be of a moment ago: the browser learns of a page's own changes later.
export const addressOf = (page) => page.evaluate(() => new Promise((done) => {
  requestAnimationFrame(() => {
    setTimeout(() => {
      window.dispatchEvent(new Event('pagehide'));
      done(location.href);
    });
  });
}));
// Cells far from the screen are drawn after the frame that shows an edit, and the page is not ready before.
export const ready = (page) => page.waitForSelector('[data-ready="true"]', {state: 'attached'});
async function attributeOf(page, name, attribute) {
  await ready(page);
  return page.locator(id(name)).getAttribute(attribute);
}
export const exact = (page, name) => attributeOf(page, name, 'data-exact');
export const shownText = (page, name) => attributeOf(page, name, 'data-text');
export const texts = (page, names) => Promise.all(names.map((name) => shownText(page, name)));

// A number typed into an input's cell, with the keyboard alone once it has the focus.
export async function type(page, name, text) {
  await page.locator(id(name)).focus();
  await page.keyboard.press('Enter');
  await page.keyboard.press('Control+A');
  await page.keyboard.type(text);
  await page.keyboard.press('Enter');
}

export async function openMenu(page, name) {
  const menu = page.locator(id(name));
  if (!(await menu.evaluate((summary) => summary.parentElement.open))) await menu.click();
}

// The file that a button of the export menu gives.
export async function downloaded(page, format) {
  await openMenu(page, 'export');
  const [file] = await Promise.all([page.waitForEvent('download'), page.locator(id(`export-${format}`)).click()]);
  return {name: file.suggestedFilename(), bytes: await readFile(await file.path())};
}

export const download = async (page, format) => (await downloaded(page, format)).bytes.toString('utf8');
