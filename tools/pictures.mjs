// pictures.mjs [FOLDER]: the workbench's pictures for README and docs, made from the built page (make web) in
// Chromium and kept small: few colours, each pixel an index. FOLDER is docs/pictures unless given.
import {mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {deflateSync, inflateSync} from 'node:zlib';

import {id, launch, open, root, serve} from '../tests/web/browser.mjs';

const kMostBytes = 60_000;
const kColours = 48;
const kWide = {viewport: {width: 1280, height: 800}}, kNarrow = {viewport: {width: 320, height: 640}};
const kDark = {colorScheme: 'dark'};

const focus = (name) => (page) => page.locator(id(name)).focus();
const top = (page, selector) => page.locator(selector).evaluate((one) => one.scrollIntoView());

const kEdited = '#/learn/three-tokens?v=1&e=X.1.0:1&pin=scores.1.2&sel=X.1.0';
const kJudged = '#/doctor?v=1&case=three-tokens-causal&pasted.weights=1+0+0;+.5+.5+0;+.25+.25+.5&decimals=2';
const kSheet = '#/sheet?v=1&case=' + encodeURIComponent(
  '{"schema":"glasshead.case/1","title":"sheet","tokens":["red","green","blue"],"X":[[1,0.5],[0,1],[-1,0.5]],'
  + '"attention":{"W_Q":[[1,0],[0,1]],"W_K":[[1,0],[0,1]],"W_V":[[1,0],[0,1]],"mask":"causal"}}');

const kPictures = [
  ['learn', kEdited, kWide, (page) => page.waitForSelector('.why math')],
  ['learn-narrow-dark', kEdited, {...kNarrow, ...kDark}, (page) => top(page, '#step-5')],
  ['sheet-dark', kSheet, {...kWide, ...kDark}, focus('sheet-tokens')],
  ['sheet-narrow', kSheet, kNarrow, focus('sheet-tokens')],
  ['doctor', kJudged, kWide, (page) => page.waitForSelector(id('doctor-cell'))],
  ['doctor-narrow-dark', kJudged, {...kNarrow, ...kDark}, async (page) => {
    await page.waitForSelector(id('doctor-cell'));
    await top(page, '.verdict');
  }],
];

// PNG, as a browser writes it: 8 bits a channel, not interlaced. Specification: https://www.w3.org/TR/png-3/
function chunks(png) {
  const found = [];
  for (let at = 8; at < png.length; at += 12 + png.readUInt32BE(at))
    found.push([png.toString('latin1', at + 4, at + 8), png.subarray(at + 8, at + 8 + png.readUInt32BE(at))]);
  return found;
}

function paeth(a, b, c) {
  const p = a + b - c, pa = Math.abs(p - a), pb = Math.abs(p - b), pc = Math.abs(p - c);
  return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
}

// Pixels as red, green, blue in one number each.
function decode(png) {
  const all = chunks(png), head = all.find(([name]) => name === 'IHDR')[1];
  const width = head.readUInt32BE(0), height = head.readUInt32BE(4), channels = {2: 3, 6: 4}[head[9]];
  if (head[8] !== 8 || !channels || head[12] !== 0) throw new Error('pictures.mjs: the browser wrote another kind of PNG');
  const rows = inflateSync(Buffer.concat(all.filter(([name]) => name === 'IDAT').map(([, data]) => data)));
  const stride = width * channels, pixels = new Uint32Array(width * height);
  let before = new Uint8Array(stride);
  for (let y = 0; y < height; ++y) {
    const filter = rows[y * (stride + 1)], row = Uint8Array.from(rows.subarray(y * (stride + 1) + 1, (y + 1) * (stride + 1)));
    for (let n = 0; n < stride; ++n) {
      const a = n < channels ? 0 : row[n - channels], b = before[n], c = n < channels ? 0 : before[n - channels];
      row[n] += [0, a, b, (a + b) >> 1, paeth(a, b, c)][filter];
    }
    for (let x = 0; x < width; ++x) pixels[y * width + x] = (row[x * channels] << 16) | (row[x * channels + 1] << 8) | row[x * channels + 2];
    before = row;
  }
  return {width, height, pixels};
}

const channelsOf = (colour) => [colour >> 16, (colour >> 8) & 255, colour & 255];
const distance = (a, b) => channelsOf(a).reduce((sum, value, n) => sum + (value - channelsOf(b)[n]) ** 2, 0);

// The most frequent colours that are not too near to one that is taken; the others become their nearest.
function palette(pixels) {
  const counts = new Map();
  for (const colour of pixels) counts.set(colour, (counts.get(colour) ?? 0) + 1);
  const sorted = [...counts].sort(([a, n], [b, m]) => m - n || a - b).map(([colour]) => colour);
  const taken = [];
  for (let apart = 48; taken.length < kColours && apart >= 0; apart -= 8)
    for (const colour of sorted)
      if (taken.length < kColours && taken.every((other) => distance(colour, other) > apart * apart)) taken.push(colour);
  const nearest = new Map(sorted.map((colour) =>
    [colour, taken.reduce((best, other, n) => (distance(colour, other) < distance(colour, taken[best]) ? n : best), 0)]));
  return {taken, nearest};
}

const kCrc = Uint32Array.from({length: 256}, (_, n) => {
  for (let bit = 0; bit < 8; ++bit) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n;
});
function chunk(name, data) {
  const body = Buffer.concat([Buffer.from(name, 'latin1'), data]), ends = Buffer.alloc(8);
  ends.writeUInt32BE(data.length, 0);
  ends.writeUInt32BE((body.reduce((crc, byte) => kCrc[(crc ^ byte) & 255] ^ (crc >>> 8), ~0) ^ ~0) >>> 0, 4);
  return Buffer.concat([ends.subarray(0, 4), body, ends.subarray(4)]);
}

function encode({width, height, pixels}) {
  const {taken, nearest} = palette(pixels), rows = Buffer.alloc(height * (width + 1));
  pixels.forEach((colour, n) => { rows[n + 1 + Math.floor(n / width)] = nearest.get(colour); });
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3, 0, 0, 0], 8);  // 8 bits, indexed
  return Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), chunk('IHDR', head), chunk('PLTE', Buffer.from(taken.flatMap(channelsOf))),
                        chunk('IDAT', deflateSync(rows, {level: 9, memLevel: 9})), chunk('IEND', Buffer.alloc(0))]);
}

const folder = process.argv[2] ?? join(root, 'docs/pictures');
mkdirSync(folder, {recursive: true});
const wanted = new Set(kPictures.map(([name]) => `workbench-${name}.png`));
for (const file of readdirSync(folder)) if (file.startsWith('workbench-') && !wanted.has(file)) rmSync(join(folder, file));

const browser = await launch(), server = await serve();
try {
  for (const [name, fragment, look, settle] of kPictures) {
    const page = await open(browser, server, fragment, {...look, reducedMotion: 'reduce'});
    await settle(page);
    await page.waitForSelector('[data-ready="true"]');
    await page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
    const small = encode(decode(await page.screenshot()));
    if (small.length > kMostBytes) throw new Error(`pictures.mjs: ${name} has ${small.length} bytes, more than ${kMostBytes}`);
    writeFileSync(join(folder, `workbench-${name}.png`), small);
    console.log(`workbench-${name}.png ${small.length} bytes`);
    await page.context().close();
  }
} finally {
  await browser.close();
  server.close();
}
