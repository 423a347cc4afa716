// The built page (build/web) on a server of its own, in Debian's Chromium.
import {createServer} from 'node:http';
import {readFile} from 'node:fs/promises';
import {existsSync} from 'node:fs';
import {createRequire} from 'node:module';
import {extname, join, normalize} from 'node:path';
import {fileURLToPath} from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));
const require = createRequire(join(root, 'web/package.json'));
const {chromium} = require('playwright-core');
export const axePath = require.resolve('axe-core/axe.min.js');
export const command = process.env.GLASSHEAD ?? join(root, 'build/release/bin/glasshead');

const kTypes = {
  '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.wasm': 'application/wasm',
};

// `broken`: the engine's modules come as these bytes instead, or those that `onlyBroken` names. `inHead`: stands in the page's head.
export async function serve({broken, onlyBroken = /\.wasm$/, inHead = ''} = {}) {
  const folder = join(root, 'build/web');
  const asked = [];
  const server = createServer(async (request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, 'http://x').pathname));
    asked.push(path);
    const file = join(folder, path.endsWith('/') ? `${path}index.html` : path);
    try {
      let bytes = broken && file.endsWith('.wasm') && onlyBroken.test(file) ? Buffer.from(broken) : await readFile(file);
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

export async function launch() {
  const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find(existsSync);
  if (!executablePath) throw new Error('no Chromium: apt-get install chromium');
  return chromium.launch({executablePath, args: ['--no-sandbox', '--disable-gpu']});
}

export const id = (name) => `[data-testid="${name}"]`;

// A page opened at an address, ready; what went wrong in it is in `errors`.
export async function open(browser, server, fragment = '', options = {}) {
  const context = await browser.newContext({viewport: {width: 1280, height: 900}, acceptDownloads: true, ...options});
  const page = await context.newPage();
  page.errors = [];
  page.foreign = [];
  page.on('pageerror', (error) => page.errors.push(String(error)));
  page.on('console', (message) => { if (message.type() === 'error') page.errors.push(message.text()); });
  page.on('request', (request) => { if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(server.origin)) page.foreign.push(request.url()); });
  await page.goto(`${server.origin}/${fragment}`);
  await page.waitForSelector('[data-ready="true"]');
  return page;
}

export const exact = (page, name) => page.locator(id(name)).getAttribute('data-exact');
export const shownText = (page, name) => page.locator(id(name)).getAttribute('data-text');
export const texts = (page, names) => Promise.all(names.map((name) => shownText(page, name)));

// A number typed into an input's cell, with the keyboard alone once it has the focus.
export async function type(page, name, text) {
  await page.locator(id(name)).focus();
  await page.keyboard.press('Enter');
  await page.keyboard.press('Control+A');
  await page.keyboard.type(text);
  await page.keyboard.press('Enter');
}

export async function download(page, format) {
  const menu = page.locator(id('export'));
  if (!(await menu.evaluate((summary) => summary.parentElement.open))) await menu.click();
  const [file] = await Promise.all([page.waitForEvent('download'), page.locator(id(`export-${format}`)).click()]);
  return readFile(await file.path(), 'utf8');
}
