// one_file.mjs FOLDER MODULE FILE: writes FILE, the page built in FOLDER (`vite build --mode one-file`) as one file that
// fetches nothing: script, style and the engine's MODULE stand in it, packed together, and the script that unpacks
// them (web/src/unpack_page.ts). `glasshead trace --interactive` and Python's Trace.to_html(interactive=True) fill in a
// case where it says so.
import {createHash} from 'node:crypto';
import {readdirSync, readFileSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';

import {asText, packed, split} from './pack.mjs';

const [, , folder, module, file] = process.argv;
if (!folder || !module || !file) throw new Error('usage: one_file.mjs FOLDER MODULE FILE');
const read = (name) => readFileSync(join(folder, name), 'utf8');
const only = (list, what) => {
  if (list.length !== 1) throw new Error(`one_file.mjs: ${list.length} ${what} in ${folder}, one is needed`);
  return list[0];
};
const alone = (code) => {
  if (/\bimport\s*\(|\bimport\b(?!\.meta)[^;'"]*['"]\.|^\s*export\b/m.test(code))
    throw new Error('one_file.mjs: a script asks for another one; build each as a single chunk');
  return code;
};
const hash = (code) => `'sha256-${createHash('sha256').update(code).digest('base64')}'`;

let page = read('index.html');
const attribute = (tag, name) => new RegExp(`\\s${name}="([^"]*)"`).exec(tag)?.[1];

const script = only(page.match(/<script\b[^>]*\bsrc=[^>]*><\/script>/g) ?? [], 'scripts');
const code = alone(read(attribute(script, 'src')));
const links = page.match(/<link\b[^>]*\brel="stylesheet"[^>]*>/g) ?? [];
const style = links.map((link) => read(attribute(link, 'href'))).join('\n');
const unpack = join('unpack/assets', only(readdirSync(join(folder, 'unpack/assets')), 'unpacking scripts'));
// In strings, templates and regular expressions these are the same, and HTML doesn't see an end.
const first = alone(read(unpack)).replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--');

const sizes = Buffer.alloc(8);
sizes.writeUInt32BE(Buffer.byteLength(code), 0);
sizes.writeUInt32BE(Buffer.byteLength(style), 4);
const rest = asText(packed(Buffer.concat([sizes, Buffer.from(code), Buffer.from(style), split(readFileSync(module))])));

const policy = `default-src 'none'; script-src ${hash(first)} ${hash(code)} 'wasm-unsafe-eval'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'`;
// A replacement's $ would be a pattern.
const replace = (from, to) => { page = page.replace(from, () => to); };
replace(only(page.match(/<meta http-equiv="Content-Security-Policy"[^>]*>/g) ?? [], 'policies'),
        `<meta http-equiv="Content-Security-Policy" content="${policy}">`);
for (const link of [...links, ...page.match(/<link\b[^>]*\brel="modulepreload"[^>]*>/g) ?? []]) replace(link, '');
replace(script, '');
// The case's place is named in src/wire/lesson.cc, too.
replace('</body>', `<script type="application/json" id="glasshead-case">{}</script>
<script type="text/plain" id="glasshead-packed">${rest}</script>
<script type="module">${first}</script>
</body>`);

const left = page.match(/\b(?:src|href)="(?!data:|#)[^"]*"/g) ?? [];
if (left.length > 0) throw new Error(`one_file.mjs: the page still asks for ${left.join(', ')}`);
writeFileSync(file, page);
