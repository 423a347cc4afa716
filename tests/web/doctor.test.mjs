// What an engineer does with the doctor's page, in Chromium: verdicts are the command's.
import assert from 'node:assert/strict';
import {execFileSync, spawnSync} from 'node:child_process';
import {readFileSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {test} from 'node:test';

import {findings, kLooks} from './axe.mjs';
import {command, id, open, root, serve, workplace} from './browser.mjs';

const {browser, server, folder} = await workplace();

const doctor = (...args) => spawnSync(command, ['doctor', ...args], {encoding: 'utf8', cwd: folder});

async function openDoctor(options = {}) {
  const page = await open(browser, server, '#/doctor', options);
  await page.waitForSelector(id('doctor-drop'));
  return page;
}

// Settled: nothing is read or judged any more.
const settled = (page) => page.waitForSelector('main[data-page="doctor"][data-ready="true"]');

async function paste(page, text, role = '') {
  await page.locator(id('doctor-paste')).fill(text);
  await page.locator(id('paste-role')).selectOption(role);
  await page.locator(id('doctor-paste-add')).click();
  await settled(page);
}

async function choose(page, name) {
  await page.locator(id('doctor-case')).selectOption(name);
  await settled(page);
}

async function drop(page, files) {
  await page.locator(id('doctor-files')).setInputFiles(files);
  await settled(page);
}

const verdict = async (page) => {
  const title = page.locator(id('doctor-verdict'));
  await title.waitFor();
  const causes = await title.getAttribute('data-causes');
  return {verdict: await title.getAttribute('data-verdict'), causes: causes === '' ? [] : causes.split(' ')};
};

const line = (page, label) => page.locator(`[data-label="${label}"] dd`).allTextContents();

async function saved(page, button) {
  const [file] = await Promise.all([page.waitForEvent('download'), page.locator(id(button)).click()]);
  return readFile(file);
}
const readFile = async (file) => readFileSync(await file.path());

// An array of float64 as NumPy stores it.
function npy(name, shape, numbers) {
  const dictionary = `{'descr': '<f8', 'fortran_order': False, 'shape': (${shape.join(', ')},), }`;
  const header = dictionary.padEnd(118 - 1) + '\n';
  const front = Buffer.from(`\x93NUMPY\x01\x00\x76\x00`, 'latin1');
  const path = join(folder, name);
  writeFileSync(path, Buffer.concat([front, Buffer.from(header), Buffer.from(Float64Array.from(numbers).buffer)]));
  return path;
}

const float64s = (path) => new Float64Array(new Uint8Array(readFileSync(path)).buffer.slice(128));

const quiet = (page) => {
  assert.deepEqual(page.errors, []);
  assert.deepEqual(page.foreign, []);
};

test('the tutorial\'s printed causal table: row B is wrong, A and C are right, no mistake is named', async () => {
  const page = await openDoctor();
  await choose(page, 'three-tokens-causal');
  await paste(page, '1.00 0 0\n0.50 0.50 0\n0.25 0.25 0.50');
  assert.equal(await page.locator(id('role-pasted')).inputValue(), 'weights');
  assert.deepEqual(await verdict(page), {verdict: 'unexplained', causes: []});
  assert.deepEqual(await line(page, 'weights'), ['row B is wrong: 0.3302 0.6698; rows A and C are right']);
  const wrong = await page.locator(`${id('doctor-cell')}[data-wrong="true"]`).evaluateAll((cells) => cells.map((cell) => cell.dataset.cell));
  assert.deepEqual(wrong, ['weights-1-0', 'weights-1-1']);
  assert.equal(await page.locator('[data-cell="weights-1-0"]').getAttribute('aria-label'), 'weights, row B, column A: 0.5, wrong, should be 0.3302');
  const args = ['three-tokens-causal', '--weights', '1.00 0 0; 0.50 0.50 0; 0.25 0.25 0.50'];
  assert.equal((await saved(page, 'export-json')).toString(), doctor(...args, '--json').stdout);
  assert.equal((await saved(page, 'export-text')).toString(), doctor(...args).stdout);
  assert.equal(await page.locator(id('doctor-command')).textContent(),
      "glasshead doctor three-tokens-causal --weights '1.00 0 0; 0.50 0.50 0; 0.25 0.25 0.50'");
  quiet(page);
});

const kGolden = {
  no_scale: 'scale-missing', scale_by_dk: 'scale-dk', scale_multiplied: 'scale-inverse', softmax_whole_matrix: 'softmax-whole',
  softmax_columns: 'softmax-columns', scores_transposed_KQt: 'scores-transposed', no_max_no_softmax_linear: 'softmax-missing',
  output_uses_weights_transposed: 'weights-transposed', values_from_X_without_WV: 'values-unprojected', keys_used_as_values: 'keys-as-values',
  mask_after_softmax_no_renormalise: 'mask-after', mask_multiplied_into_scores_zero: 'mask-multiply', mask_inverted: 'mask-inverted',
  mask_excludes_diagonal: 'mask-strict', mask_anti_causal_lower_hidden: 'mask-transposed', mask_ignored: 'mask-ignored',
  mask_with_finite_minus_one: 'mask-finite:-1',
};

// Queries that stand elsewhere hide the same pairs: the other name of one mask, told along with the first.
const alone = ({verdict: word, causes}) => ({verdict: word, causes: causes.filter((cause, n) => n === 0 || !cause.startsWith('positions-shifted'))});

test('each golden mistake\'s output on separating-causal is named, alone', async () => {
  const golden = JSON.parse(readFileSync(join(root, 'tests/data/seeds/ours_separating_causal.json'), 'utf8')).mistakes;
  assert.deepEqual(Object.keys(golden).sort(), Object.keys(kGolden).sort());
  const page = await openDoctor();
  await choose(page, 'separating-causal');
  for (const [name, {output}] of Object.entries(golden)) {
    const rows = output.map((row) => row.map((x) => (x === 'nan' ? 0 : x)));
    await drop(page, [npy('theirs_out.npy', [rows.length, rows[0].length], rows.flat())]);
    assert.deepEqual(alone(await verdict(page)), {verdict: 'mistaken', causes: [kGolden[name]]}, name);
    const args = ['separating-causal', '--out', 'theirs_out.npy', '--json'];
    assert.equal((await saved(page, 'export-json')).toString(), doctor(...args).stdout, name);
  }
  quiet(page);
});

test('the right output of three-tokens-causal is right; what it cannot show is said and a probe offered', async () => {
  const page = await openDoctor();
  await choose(page, 'three-tokens-causal');
  await paste(page, '[[1, 0], [0.3302384506733431, 0.6697615493266569], [0.7517449217422769, 0.7517449217422769]]');
  assert.deepEqual(await verdict(page), {verdict: 'right', causes: []});
  const [but] = await line(page, 'but');
  for (const blind of ['scores-transposed', 'values-unprojected', 'keys-as-values']) assert.match(but, new RegExp(blind));
  await page.locator(id('probe-q_len')).fill('12');
  await page.locator(id('probe-kv_len')).fill('12');
  await page.locator(id('probe-make')).click();
  await page.waitForSelector(id('probe-made'));
  quiet(page);
});

test('a probe is a file that the command reads, and on it a mistake is named by both', async () => {
  const page = await openDoctor();
  await page.locator(id('option-causal')).selectOption('end');
  await page.locator(id('probe-heads')).fill('2');
  await page.locator(id('probe-q_len')).fill('5');
  await page.locator(id('probe-kv_len')).fill('9');
  await page.locator(id('probe-make')).click();
  await page.waitForSelector(id('probe-made'));
  writeFileSync(join(folder, 'probe.safetensors'), await saved(page, 'probe-save'));
  const attend = (...args) => execFileSync(command, ['attend', '--qkv', 'probe.safetensors', ...args], {cwd: folder});
  attend('--causal=start', '--out', 'theirs.npy');
  await drop(page, [join(folder, 'probe.safetensors'), join(folder, 'theirs.npy')]);
  const now = await verdict(page);
  assert.deepEqual(alone(now), {verdict: 'mistaken', causes: ['causal-corner:0']});
  const files = ['q', 'k', 'v'].map((name) => [`--${name}`, `probe.safetensors:${name}`]).flat();
  const args = [...files, '--out', 'theirs.npy', '--causal=end'];
  assert.equal(await page.locator(id('doctor-command')).textContent(), `glasshead doctor ${args.join(' ')}`);
  assert.equal((await saved(page, 'export-json')).toString(), doctor(...args, '--json').stdout);
  quiet(page);
});

test('heads that lie side by side are told apart', async () => {
  const page = await openDoctor();
  const numbers = (n) => [...Array(n).keys()].map((i) => ((i * 7919) % 23) / 7 - 1.5);
  const files = ['q', 'k', 'v'].map((name, n) => npy(`${name}.npy`, [4, 6], numbers(24 + n).slice(n)));
  // Two heads of 3: the same numbers with the heads as an axis, for the command.
  const apart = (path) => {
    const all = float64s(path);
    return [0, 1].flatMap((h) => [0, 1, 2, 3].flatMap((l) => [0, 1, 2].map((d) => all[6 * l + 3 * h + d])));
  };
  ['q', 'k', 'v'].forEach((name, n) => npy(`${name}h.npy`, [2, 4, 3], apart(files[n])));
  execFileSync(command, ['attend', '--q', 'qh.npy', '--k', 'kh.npy', '--v', 'vh.npy', '--out', 'outh.npy'], {cwd: folder});
  const out = float64s(join(folder, 'outh.npy'));
  const beside = [0, 1, 2, 3].flatMap((l) => [0, 1].flatMap((h) => [0, 1, 2].map((d) => out[12 * h + 3 * l + d])));
  await page.locator(id('option-heads')).fill('2');
  await page.locator(id('option-heads')).press('Enter');
  await drop(page, [...files, npy('out.npy', [4, 6], beside)]);
  assert.deepEqual(await verdict(page), {verdict: 'right', causes: []});
  quiet(page);
});

const code = async (page) => {
  const banner = page.locator(id('banner-error')).first();
  await banner.waitFor();
  return [await banner.getAttribute('data-code'), await banner.textContent()];
};

test('what cannot be read is said, with a code, and spoils nothing else', async () => {
  const page = await openDoctor();
  await choose(page, 'separating-causal');
  writeFileSync(join(folder, 'cut.npy'), Buffer.from('\x93NUMPY\x01\x00\x76\x00{', 'latin1'));
  await drop(page, [join(folder, 'cut.npy')]);
  assert.equal((await code(page))[0], 'file-broken');
  await paste(page, '1 0\n.5 .5\n.5 .5');
  assert.equal((await verdict(page)).verdict, 'unexplained');
  await page.locator(id('remove-cut.npy')).click();
  await settled(page);
  assert.equal(await page.locator(id('banner-error')).count(), 0);

  await paste(page, '0,5\t0,5\n1\t0');
  const [name, text] = await code(page);
  assert.equal(name, 'numbers-unclear');
  assert.match(text, /decimal comma; a point is needed: 0\.5/);

  writeFileSync(join(folder, 'mine.json'), '{"schema":"glasshead.case/1","X":[[1],[2,3]]}');
  await page.locator(id('doctor-clear')).click();
  await drop(page, [join(folder, 'mine.json')]);
  assert.equal((await code(page))[0], 'case-broken');
  assert.deepEqual(page.errors, []);
});

test('what does not fit together is refused in the command\'s words', async () => {
  const page = await openDoctor();
  await choose(page, 'separating-causal');
  await paste(page, '1 0 0\n0 1 0', 'out');
  const [name, text] = await code(page);
  assert.equal(name, 'refused');
  assert.match(text, /out/);
  await page.locator(id('role-pasted out')).selectOption('');
  await settled(page);
  assert.equal(await page.locator(id('banner-error')).count(), 0);
  assert.match(await page.locator(id('doctor-missing')).textContent(), /Still missing/);
  await page.locator(id('doctor-clear')).click();
  await paste(page, '1 0\n0 1', 'q');
  await paste(page, '1 0\n0 1', 'k');
  await paste(page, '1 0\n0 1', 'v');
  await paste(page, '1 0\n0 1', 'out');
  await page.locator(id('option-scale')).fill('half');
  await page.locator(id('option-scale')).press('Enter');
  await settled(page);
  assert.match((await code(page))[1], /scalefound|scale ?found 'half'; a number is needed/);
});

test('numbers whose axes are swapped are said to be; what is missing is named, and no more', async () => {
  const page = await openDoctor();
  for (const role of ['q', 'k', 'v']) await paste(page, '1 0\n0 1\n1 1', role);
  await paste(page, '1 0 1\n0 1 1');
  assert.equal(await page.locator(id('doctor-missing')).textContent(),
      'Still missing: numbers of theirs: out, weights, scores or lse. Say above which is which.');
  assert.equal(await page.locator(id('doctor-hint')).textContent(),
      'pasted, 2×3, has the sizes of out, 3×2, in another order: two axes are swapped.');
  await page.locator(id('remove-pasted q')).click();
  await settled(page);
  assert.match(await page.locator(id('doctor-missing')).textContent(), /^Still missing: q \(or a worked example\); and numbers of theirs/);
  quiet(page);
});

test('the verdict says which mask it was made with, offers a causal one, and a probe in its place', async () => {
  const page = await openDoctor();
  for (const role of ['q', 'k', 'v']) await paste(page, '1 0\n0 1\n1 1', role);
  await paste(page, '1 0\n.3302 .6698\n.7517 .7517', 'out');
  const assumed = page.locator(id('doctor-assumed'));
  assert.match(await assumed.textContent(), /^Judged without a mask/);
  assert.equal((await verdict(page)).verdict, 'mistaken');
  await page.locator(id('judge-causal')).click();
  await settled(page);
  assert.equal(await assumed.textContent(), 'Judged with a causal mask.');
  assert.equal((await verdict(page)).verdict, 'right');
  assert.doesNotMatch(await page.locator('.lines').textContent(), /glasshead|--/);
  await page.locator(id('verdict-probe')).click();
  await page.waitForSelector(id('probe-made'));
  await choose(page, 'three-tokens-causal');
  quiet(page);
});

test('files larger than a page reads: what to run instead', async () => {
  const page = await openDoctor();
  writeFileSync(join(folder, 'large.npy'), Buffer.alloc((8 << 20) + 1));
  await drop(page, [join(folder, 'large.npy')]);
  const [name, text] = await code(page);
  assert.equal(name, 'too-large');
  assert.match(text, /glasshead doctor --q q\.npy/);
});

test('without the large module the page says so and keeps what was given', async () => {
  const cut = await serve({broken: 'not a module', onlyBroken: /assets\/glasshead\./});
  const page = await open(browser, cut, '#/doctor');
  await page.locator(id('doctor-paste')).fill('1 0; 0 1');
  await page.locator(id('doctor-paste-add')).click();
  assert.equal((await code(page))[0], 'engine-not-loaded');
  assert.equal(await page.locator(id('doctor-paste')).inputValue(), '1 0; 0 1');
  cut.close();
});

test('by keyboard and by names alone', async () => {
  const page = await openDoctor();
  await page.getByRole('combobox', {name: 'of the worked example'}).selectOption('three-tokens-causal');
  await page.getByRole('textbox', {name: 'numbers from a spreadsheet, JSON or Python'}).focus();
  await page.keyboard.type('1 0 0; .5 .5 0; .25 .25 .5');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', {name: 'Wrong'}).waitFor();
  assert.equal(await page.getByRole('cell', {name: 'weights, row B, column A: 0.5, wrong, should be 0.3302'}).count(), 1);
});

for (const [look, options] of Object.entries(kLooks)) {
  test(`axe finds nothing on the doctor's page: ${look}`, async () => {
    const page = await openDoctor(options);
    await choose(page, 'separating-causal');
    await paste(page, '1 0\n.5 .5\n.5 .5');
    await verdict(page);
    await page.locator(id('probe-make')).click();
    await page.waitForSelector(id('probe-made'));
    assert.deepEqual(await findings(page), []);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'only matrices scroll sideways');
  });
}
