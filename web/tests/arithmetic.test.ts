// The page computes no number: what is shown was made by the engine.
import {readdirSync, readFileSync} from 'node:fs';
import {fileURLToPath} from 'node:url';
import {expect, test} from 'vitest';

const folder = fileURLToPath(new URL('../src', import.meta.url));
const sources = readdirSync(folder, {recursive: true, encoding: 'utf8'}).filter((name) => /\.tsx?$/.test(name));

const kRules: [RegExp, string][] = [
  [/\bMath\./, 'Math'], [/\.toFixed|\.toPrecision|\.toExponential|toLocaleString|Intl\./, 'number formatting'],
  [/parseFloat|Number\.parse/, 'reading decimals'], [/\bNumber\(\s*\w*(exact|text|value)\w*\s*\)(?!\s*[>}])/i, 'a shown number read as a number'],
];

test.each(sources)('%s does no arithmetic on numbers that are shown', (name) => {
  const text = readFileSync(`${folder}/${name}`, 'utf8').replace(/\/\/.*$/gm, '');
  const found = kRules.filter(([rule, what]) => rule.test(text) && !(name === 'address.ts' && what.includes('shown')));
  expect(found.map(([, what]) => what)).toEqual([]);
});
