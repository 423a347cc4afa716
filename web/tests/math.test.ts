// The engine's formulas as MathML: nothing of them is lost, and which are words is known.
import {readdirSync, readFileSync} from 'node:fs';
import {fileURLToPath} from 'node:url';
import {isValidElement, type ComponentChildren} from 'preact';
import {beforeAll, expect, test} from 'vitest';

import type {Derived, View} from '../src/answers';
import {Engine} from '../src/engine';
import {mathOf} from '../src/ui/math';

const root = fileURLToPath(new URL('../..', import.meta.url));
const formulas = new Set<string>();

beforeAll(() => {
  const engine = new Engine(new WebAssembly.Module(readFileSync(`${root}/build/wasm/bin/glasshead.wasm`)));
  for (const file of readdirSync(`${root}/cases`)) {
    const given = {name: file.replace('.json', ''), case: readFileSync(`${root}/cases/${file}`, 'utf8'), edit: {}};
    const view = engine.call({call: 'view', ...given});
    if (!view.ok) throw new Error(JSON.stringify(view.problems));
    for (const {formula, tables} of (JSON.parse(view.bytes) as View).document.sections) {
      if (formula) formulas.add(formula);
      for (const {tap, head} of tables) {
        const derived = engine.call({call: 'derive', ...given, tap, head, row: 0, column: 0});
        if (derived.ok) formulas.add((JSON.parse(derived.bytes) as Derived | null)?.formula ?? '');
      }
    }
  }
  formulas.delete('');
});

// As text: "msup(K T)", "mfrac(1 l)".
function written(node: ComponentChildren): string {
  if (Array.isArray(node)) return node.map(written).filter(Boolean).join(' ');
  if (!isValidElement(node)) return typeof node === 'string' ? node.trim() : '';
  const inside = written((node.props as {children?: ComponentChildren}).children);
  if (typeof node.type !== 'string' || /^(?:math|mrow|mi|mo|mn)$/.test(node.type)) return inside;
  return node.type === 'mspace' ? '' : `${node.type}(${inside})`;
}

test('every character of a formula is in it, but for those that are drawn', () => {
  const words: string[] = [];
  for (const formula of formulas) {
    const math = mathOf(formula);
    if (math === undefined) {
      words.push(formula);
      continue;
    }
    const plain = (text: string) => text.replace(/ᵀ/g, 'T').replace(/²/g, '2').replace(/ₕ/g, 'h').replace(/[\s/√_()]/g, '');
    expect(plain(written(math).replace(/m(?:sup|sub|subsup|frac|sqrt)/g, '')), formula).toBe(plain(formula));
  }
  expect(words.sort()).toEqual(['Kₕ = columns of head h', 'Qₕ = columns of head h', 'Vₕ = columns of head h', 'X = E[id]', 'Z = allowed ? Z : −∞',
    'argmax P', 'cache, then the new rows', 'heads side by side']);
});

test.each([
  ['S = Q·Kᵀ', 'S = Q · msup(K T)'],
  ['A = E / l', 'A = mfrac(E l)'],
  ['cos = D·Dᵀ / |D||D|', 'cos = mfrac(D · msup(D T) | D | | D |)'],
  ['x/√(mean x² + ε)·g', 'mfrac(x msqrt(mean msup(x 2) + ε)) · g'],
  ['Q = X·W_Q  K = X·W_K', 'Q = X · msub(W Q) K = X · msub(W K)'],
  ['m = max_j Z', 'm = msub(max j) Z'],
  ['E = exp(Z − m)', 'E = exp ( Z − m )'],
  ['Z = S · 0.7071', 'Z = S · 0.7071'],
])('%s', (formula, wanted) => { expect(written(mathOf(formula))).toBe(wanted); });

test.each(['', 'what is this', 'A = (', 'A = / l', '√', 'a b = c', '<b> = 1', '·'])('%s is no formula', (text) => {
  expect(mathOf(text)).toBeUndefined();
});
