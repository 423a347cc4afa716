// The state in the address, readable and versioned, in the fragment and so never sent:
//
//   #/learn/three-tokens?v=1&e=X.1.0:1,W_Q.0.1:2&mask=causal&hide=2&step=4&mode=hand2
//   #/sheet?v=1&case={...}&e=X.1.0:1   the same of a sheet's own case, whole
//
// Above 40 edits "z" holds them deflated (packed.ts), which is undone before this reads the rest.
//
// Unknown keys are kept; a value that isn't right is left out and named.
import {type Edits, noEdits, placeOf} from './edits';

export const kVersion = 1;
export const kSheet = 'sheet';
export const kMostAddress = 16_000;  // characters: longer links are cut by what passes them on
// What a sheet without a case of its own starts with.
export const kBlankSheet = '{"schema":"glasshead.case/1","title":"sheet","tokens":["A","B","C"],"X":[[0,0],[0,0],[0,0]],'
    + '"attention":{"W_Q":[[1,0],[0,1]],"W_K":[[1,0],[0,1]],"W_V":[[1,0],[0,1]]}}';

export interface Shown {
  readonly step?: number;     // the section that is walked to
  readonly hand?: number;     // by hand, with so many decimals
  readonly mistake?: string;
  readonly sel?: string;      // "weights.1.0": the cell whose origin is outlined
  readonly pin?: string;      // "out.1.0,weights.1.0": cells that were pinned, one out of the other; the last one's origin stays outlined
}

export interface Address {
  readonly page: 'learn' | 'sheet';
  readonly name: string;  // of the case; a sheet's is "sheet"
  readonly edits: Edits;
  readonly shown: Shown;
  readonly unknown: readonly (readonly [string, string])[];
}

export interface Read {
  address: Address;
  wrong: string[];  // what was left out
}

const kNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const kMask = /^[a-z][\w:,/+]*$/;
const kMistake = /^[a-z0-9-]+(?::[-\w.+]+)?$/;
const kName = /^[a-z0-9][\w-]*$/i;
const kCell = /^[A-Za-z_][\w.]*?(?:\.h\d+)?\.\d+\.\d+$/;
export const kMostPins = 20;

export const isNumberText = (text: string) => kNumber.test(text);

// Readable where the fragment allows it.
function encode(text: string): string {
  return encodeURIComponent(text).replace(/%(2C|2F|3A|2B)/g, (code) => decodeURIComponent(code));
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

export function format({page, name, edits, shown, unknown}: Address): string {
  const fields: [string, string][] = [['v', String(kVersion)]];
  if (edits.base !== undefined && edits.base !== kBlankSheet) fields.push(['case', edits.base]);
  if (edits.set.length > 0)
    fields.push(['e', edits.set.map(([place, text]) => `${place}:${text}`).join(',')]);
  if (edits.mask !== undefined) fields.push(['mask', edits.mask]);
  if (edits.hide.length > 0) fields.push(['hide', edits.hide.join(',')]);
  if (edits.scale !== undefined) fields.push(['scale', edits.scale]);
  if (edits.emptyRow !== undefined) fields.push(['empty', edits.emptyRow]);
  if (shown.step !== undefined) fields.push(['step', String(shown.step)]);
  if (shown.hand !== undefined) fields.push(['mode', `hand${shown.hand}`]);
  if (shown.mistake !== undefined) fields.push(['mistake', shown.mistake]);
  if (shown.sel !== undefined) fields.push(['sel', shown.sel]);
  if (shown.pin !== undefined) fields.push(['pin', shown.pin]);
  const all = [...fields, ...unknown].map(([key, value]) => `${encode(key)}=${encode(value)}`);
  return `#/${page === 'sheet' ? page : `${page}/${name}`}?${all.join('&')}`;
}

class Reader {
  constructor(private readonly isSheet: boolean) {}

  readonly wrong: string[] = [];
  readonly unknown: [string, string][] = [];
  edits: Edits = noEdits;
  shown: Shown = {};

  field(key: string, value: string): void {
    switch (key) {
      case 'v': return this.version(value);
      case 'case':
        if (!this.isSheet) break;
        this.edits = {...this.edits, base: value};
        return;
      case 'e': return this.numbers(value);
      case 'mask':
        return this.check(key, value, kMask, () => { this.edits = {...this.edits, mask: value}; });
      case 'hide': return this.hide(value);
      case 'scale':
        return this.check(key, value, kNumber, () => { this.edits = {...this.edits, scale: value}; });
      case 'empty':
        return this.check(key, value, /^(?:zero|error)$/, () => {
          this.edits = {...this.edits, emptyRow: value as 'zero' | 'error'};
        });
      case 'step':
        return this.check(key, value, /^\d{1,3}$/, () => {
          this.shown = {...this.shown, step: Number(value)};
        });
      case 'mode':
        return this.check(key, value, /^(?:exact|hand(?:\d|1[0-2]))$/, () => {
          if (value !== 'exact') this.shown = {...this.shown, hand: Number(value.slice(4))};
        });
      case 'mistake':
        return this.check(key, value, kMistake, () => {
          this.shown = {...this.shown, mistake: value};
        });
      case 'sel':
        return this.check(key, value, kCell, () => { this.shown = {...this.shown, sel: value}; });
      case 'pin':
        return this.pins(value);
      case 'z':
        this.wrong.push('z (it can’t be unpacked)');
        return;
    }
    this.unknown.push([key, value]);
  }

  private check(key: string, value: string, right: RegExp, keep: () => void): void {
    if (right.test(value)) keep();
    else this.wrong.push(`${key}=${value}`);
  }

  private version(value: string): void {
    if (value === String(kVersion)) return;
    this.wrong.push(/^\d{1,6}$/.test(value) && Number(value) > kVersion
                        ? `v=${value} (the link is from a newer version of this page)`
                        : `v=${value}`);
  }

  private numbers(value: string): void {
    const set: [string, string][] = [...this.edits.set].map(([place, text]) => [place, text]);
    for (const part of value.split(',')) {
      const colon = part.lastIndexOf(':');
      const place = part.slice(0, colon), text = part.slice(colon + 1);
      const isRight = colon > 0 && placeOf(place) && kNumber.test(text) &&
          !set.some(([known]) => known === place);
      if (isRight) set.push([place, text]);
      else this.wrong.push(`e=${part}`);
    }
    this.edits = {...this.edits, set};
  }

  private pins(value: string): void {
    const cells = value.split(',');
    if (cells.length <= kMostPins && cells.every((cell) => kCell.test(cell))) this.shown = {...this.shown, pin: value};
    else this.wrong.push(`pin=${value}`);
  }

  private hide(value: string): void {
    const keys = value.split(',');
    const right = keys.filter((key) => /^(?:0|[1-9]\d{0,5})$/.test(key));
    for (const key of keys) if (!right.includes(key)) this.wrong.push(`hide=${key}`);
    this.edits = {...this.edits, hide: [...new Set(right.map(Number))].sort((a, b) => a - b)};
  }
}

export function parse(fragment: string, otherwise: string): Read {
  const found = /^#?\/?([^/?]*)(?:\/([^?]*))?(?:\?(.*))?$/s.exec(fragment);
  const page = found?.[1] ?? '', isSheet = page === 'sheet', reader = new Reader(isSheet);
  const name = decode(found?.[2] ?? '') ?? '';
  if (page !== 'learn' && page !== '' && !isSheet) reader.wrong.push(`the page ${page}`);
  const isNamed = kName.test(name);
  if (!isNamed && name !== '') reader.wrong.push(`the case ${name}`);
  for (const part of (found?.[3] ?? '').split('&')) {
    if (part === '') continue;
    const equals = part.indexOf('=');
    const key = decode(equals < 0 ? part : part.slice(0, equals));
    const value = decode(equals < 0 ? '' : part.slice(equals + 1));
    if (key === undefined || value === undefined) reader.wrong.push(part);
    else reader.field(key, value);
  }
  const {edits, shown, unknown, wrong} = reader;
  if (isSheet) {
    const sheet = edits.base === undefined ? {...edits, base: kBlankSheet} : edits;
    return {address: {page: 'sheet', name: kSheet, edits: sheet, shown, unknown}, wrong};
  }
  return {address: {page: 'learn', name: isNamed ? name : otherwise, edits, shown, unknown}, wrong};
}
