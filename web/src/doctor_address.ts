// What the doctor was given, in the address, readable and versioned, in the fragment and so never sent:
//
//   #/doctor?v=1&case=three-tokens-causal&pasted.weights=1+0+0;+.5+.5+0;+.25+.25+.5&decimals=2
//
//   case         a worked example, or "file:mine.json", whose text stands in file.mine.json
//   pasted.out   what was pasted as out; pasted: as something to be guessed
//   file.x.csv   the text of a dropped file
//   needs        files that no address can carry, and texts that are too long for it: to be dropped again
//   is.x.npy     what a tensor was said to be: out; nothing: not used
//   causal, …    the options, by their names on the page
//
// Unknown keys are kept; a value that isn't right is left out and named.
import {kMostAddress, kVersion} from './address';

export interface DoctorLink {
  readonly case: string;
  readonly texts: readonly (readonly [name: string, text: string])[];
  readonly needs: readonly string[];
  readonly roles: readonly (readonly [tensor: string, role: string])[];
  readonly options: readonly (readonly [name: string, text: string])[];
  readonly unknown: readonly (readonly [key: string, value: string])[];
}

export const kRoles = ['q', 'k', 'v', 'mask', 'bias', 'out', 'weights', 'scores', 'lse', 'dq', 'dk', 'dv', 'd_out'];

const kAny = /^.{1,200}$/s;
// The engine reads what is typed; these say which choices there are.
const kOptions: Readonly<Record<string, RegExp>> = {
  causal: /^(?:yes|start|end)$/, rope: /^(?:halves|adjacent)$/, dtype: /^(?:f64|f32|bf16|f16)$/, pairs: /^no$/, decimals: kAny,
  scale: kAny, heads: kAny, softcap: kAny, window: kAny, key_lengths: kAny, prefix: kAny, query_start: kAny, alibi: kAny, rope_base: kAny,
};
const kJudging = ['decimals', 'dtype', 'pairs'];
export const isJudging = (option: string): boolean => kJudging.includes(option);

// A pasted text's name, and its key.
const kPasted = 'pasted';
export const pastedName = (role: string): string => (role === '' ? kPasted : `${kPasted} ${role}`);
function keyOfText(name: string): string {
  if (name === kPasted) return kPasted;
  const role = name.startsWith(`${kPasted} `) ? name.slice(kPasted.length + 1) : '';
  return kRoles.includes(role) ? `${kPasted}.${role}` : `file.${name}`;
}
function nameOfText(key: string): string | undefined {
  if (key === kPasted) return kPasted;
  if (key.startsWith('file.') && key.length > 5) return key.slice(5);
  const role = key.startsWith(`${kPasted}.`) ? key.slice(kPasted.length + 1) : '';
  return kRoles.includes(role) ? pastedName(role) : undefined;
}

// Readable where the fragment allows it; a space is a plus, as in forms.
const encode = (text: string) => encodeURIComponent(text).replace(/%(2C|2F|3A|3B|20)/g, (code) =>
  (code === '%20' ? '+' : decodeURIComponent(code)));

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', '%20'));
  } catch {
    return undefined;
  }
}

// Names in a list, without their commas.
const asList = (names: readonly string[]) => names.map((name) => name.replace(/[%,]/g, encodeURIComponent)).join(',');
const fromList = (text: string) => text.split(',').map((name) => name.replaceAll('%2C', ',').replaceAll('%25', '%'));

export function formatDoctor(link: DoctorLink): string {
  const fields: (readonly [string, string])[] = [['v', String(kVersion)]];
  if (link.case !== '') fields.push(['case', link.case]);
  for (const [name, text] of link.texts) fields.push([keyOfText(name), text]);
  if (link.needs.length > 0) fields.push(['needs', asList(link.needs)]);
  for (const [tensor, role] of link.roles) fields.push([`is.${tensor}`, role]);
  fields.push(...link.options, ...link.unknown);
  return `#/doctor?${fields.map(([key, value]) => `${encode(key)}=${encode(value)}`).join('&')}`;
}

export interface Kept {
  address: string;
  tooLong: string[];  // texts that are named only
}

// The longest texts give way until the rest fits.
export function kept(link: DoctorLink): Kept {
  const tooLong: string[] = [];
  for (;;) {
    const texts = link.texts.filter(([name]) => !tooLong.includes(name));
    const needs = [...link.needs.filter((name) => !tooLong.includes(name)), ...tooLong];
    const address = formatDoctor({...link, texts, needs});
    const [longest] = [...texts].sort(([, a], [, b]) => b.length - a.length);
    if (address.length <= kMostAddress || !longest) return {address, tooLong};
    tooLong.push(longest[0]);
  }
}

type Pairs = (readonly [string, string])[];

class Reader {
  theCase = '';
  readonly texts: Pairs = [];
  readonly roles: Pairs = [];
  readonly options: Pairs = [];
  readonly unknown: Pairs = [];
  readonly wrong: string[] = [];
  needs: string[] = [];

  field(key: string, value: string): void {
    if (key === 'v') return this.version(value);
    if (key === 'case') {
      this.theCase = value;
      return;
    }
    if (key === 'needs') {
      this.needs = fromList(value).filter((name, n, all) => name !== '' && all.indexOf(name) === n);
      return;
    }
    const name = nameOfText(key), option = Object.hasOwn(kOptions, key) ? kOptions[key] : undefined;
    if (name !== undefined) this.keep(this.texts, name, value, value.trim() !== '', key);
    else if (option) this.keep(this.options, key, value, option.test(value) && value.trim() === value, key);
    else if (/^is\../s.test(key)) this.keep(this.roles, key.slice(3), value, value === '' || kRoles.includes(value), key);
    else this.unknown.push([key, value]);
  }

  private keep(list: Pairs, name: string, value: string, isRight: boolean, key: string): void {
    if (isRight && !list.some(([known]) => known === name)) list.push([name, value]);
    else this.wrong.push(`${key}=${value.slice(0, 40)}`);
  }

  private version(value: string): void {
    if (value === String(kVersion)) return;
    this.wrong.push(/^\d{1,6}$/.test(value) && Number(value) > kVersion
                        ? `v=${value} (the link is from a newer version of this page)` : `v=${value}`);
  }
}

export function parseDoctor(fragment: string): {link: DoctorLink; wrong: string[]} {
  const reader = new Reader(), at = fragment.indexOf('?');
  for (const part of at < 0 ? [] : fragment.slice(at + 1).split('&')) {
    if (part === '') continue;
    const equals = part.indexOf('=');
    const key = decode(equals < 0 ? part : part.slice(0, equals)), value = decode(equals < 0 ? '' : part.slice(equals + 1));
    if (key === undefined || value === undefined) reader.wrong.push(part.slice(0, 40));
    else reader.field(key, value);
  }
  const {theCase, texts, roles, options, unknown, wrong} = reader;
  const needs = reader.needs.filter((name) => !texts.some(([known]) => known === name));
  return {link: {case: theCase, texts, needs, roles, options, unknown}, wrong};
}
