// one_file.mjs FOLDER FILE: writes FILE, the page built in FOLDER (`vite build --mode one-file`) as one file that
// fetches nothing: script, styles and the engine's module, gzipped, stand in it. `glasshead trace
// --interactive` and Python's Trace.to_html(interactive=True) fill in a case where it says so.
import {createHash} from 'node:crypto';
import {readdirSync, readFileSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {gzipSync} from 'node:zlib';

const [, , folder, file] = process.argv;
if (!folder || !file) throw new Error('usage: one_file.mjs FOLDER FILE');
const read = (name) => readFileSync(join(folder, name), 'utf8');
const only = (list, what) => {
  if (list.length !== 1) throw new Error(`one_file.mjs: ${list.length} ${what} in ${folder}, one is needed`);
  return list[0];
};

let page = read('index.html');
const attribute = (tag, name) => new RegExp(`\\s${name}="([^"]*)"`).exec(tag)?.[1];

const script = only(page.match(/<script\b[^>]*\bsrc=[^>]*><\/script>/g) ?? [], 'scripts');
const code = read(attribute(script, 'src'))
    // In strings, templates and regular expressions these are the same, and HTML doesn't see an end.
    .replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--');
if (/\bimport\s*\(|\bimport\b[^;'"]*['"]\.|^\s*export\b/m.test(code))
  throw new Error('one_file.mjs: the script asks for another one; build it as a single chunk');
const hash = createHash('sha256').update(code).digest('base64');

// The one that answers everything; a page on a server opens with a smaller one.
const engine = only(readdirSync(join(folder, 'assets')).filter((name) => /^glasshead-.*\.wasm$/.test(name)), 'modules');
const module = gzipSync(readFileSync(join(folder, 'assets', engine)), {level: 9}).toString('base64');

const policy = `default-src 'none'; script-src 'sha256-${hash}' 'wasm-unsafe-eval'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'`;
// A replacement's $ would be a pattern.
const replace = (from, to) => { page = page.replace(from, () => to); };
replace(only(page.match(/<meta http-equiv="Content-Security-Policy"[^>]*>/g) ?? [], 'policies'),
        `<meta http-equiv="Content-Security-Policy" content="${policy}">`);
for (const link of page.match(/<link\b[^>]*\brel="stylesheet"[^>]*>/g) ?? [])
  replace(link, `<style>${read(attribute(link, 'href'))}</style>`);
for (const link of page.match(/<link\b[^>]*\brel="modulepreload"[^>]*>/g) ?? []) replace(link, '');
replace(script, '');
// The case's place is named in src/wire/lesson.cc, too.
replace('</body>', `<script type="application/json" id="glasshead-case">{}</script>
<script type="text/plain" id="glasshead-module">${module}</script>
<script type="module">${code}</script>
</body>`);

const left = page.match(/\b(?:src|href)="(?!data:|#)[^"]*"/g)?.filter((found) => !code.includes(found)) ?? [];
if (left.length > 0) throw new Error(`one_file.mjs: the page still asks for ${left.join(', ')}`);
writeFileSync(file, page);
