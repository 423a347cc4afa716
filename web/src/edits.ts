// What somebody changed in a case, and the way back. Numbers are the texts that were typed.
import type {EngineEdit} from './answers';

export interface Edits {
  readonly set: readonly (readonly [place: string, text: string])[];  // ["X.1.0", "0.5"]
  readonly hide: readonly number[];                                   // keys
  readonly mask?: string;
  readonly scale?: string;
  readonly emptyRow?: 'zero' | 'error';
  readonly base?: string;  // of a sheet: the case's text that the rest is relative to
}

export const noEdits: Edits = {set: [], hide: []};
export const untouched = ({base}: Edits): Edits => (base === undefined ? noEdits : {...noEdits, base});

export function isEdited(edits: Edits): boolean {
  return edits.set.length > 0 || edits.hide.length > 0 || edits.mask !== undefined ||
      edits.scale !== undefined || edits.emptyRow !== undefined;
}

export function areSame(a: Edits, b: Edits): boolean {
  return a.base === b.base && JSON.stringify(toEngine(a)) === JSON.stringify(toEngine(b));
}

// The latest text of a place counts; it keeps its turn.
export function withNumber(edits: Edits, place: string, text: string): Edits {
  const at = edits.set.findIndex(([known]) => known === place);
  const set = at < 0 ? [...edits.set, [place, text] as const]
                     : edits.set.map((entry, n) => (n === at ? [place, text] as const : entry));
  return {...edits, set};
}

export function withHidden(edits: Edits, key: number, isHidden: boolean): Edits {
  const hide = edits.hide.filter((known) => known !== key);
  if (isHidden) hide.push(key);
  return {...edits, hide: hide.sort((a, b) => a - b)};
}

type Choice = 'mask' | 'scale' | 'emptyRow';
// undefined: as the case has it.
export function withChoice(edits: Edits, name: Choice, value: string | undefined): Edits {
  const {[name]: _, ...rest} = edits;
  return value === undefined ? rest : {...rest, [name]: value} as Edits;
}

// "X.1.0" -> X and [1, 0]; "block.0.W_Q.1.0" -> block.0.W_Q and [1, 0].
export function placeOf(place: string): {matrix: string; at: number[]} | undefined {
  const found = /^([A-Za-z_][\w.]*?)((?:\.\d{1,6}){1,4})$/.exec(place);
  if (!found) return undefined;
  return {matrix: found[1]!, at: found[2]!.slice(1).split('.').map(Number)};
}

export function toEngine(edits: Edits): EngineEdit {
  const edit: EngineEdit = {};
  if (edits.set.length > 0)
    edit.set = edits.set.map(([place, to]) => ({...placeOf(place)!, to}));
  if (edits.hide.length > 0) edit.hide = [...edits.hide];
  if (edits.mask !== undefined) edit.mask = edits.mask;
  if (edits.scale !== undefined) edit.scale = edits.scale;
  if (edits.emptyRow !== undefined) edit.empty_row = edits.emptyRow;
  return edit;
}

// A drill's edit on top of others.
export function fromEngine(edits: Edits, edit: EngineEdit): Edits {
  let out = edits;
  for (const {matrix, at, to} of edit.set ?? [])
    out = withNumber(out, [matrix, ...at].join('.'), to);
  for (const key of edit.hide ?? []) out = withHidden(out, key, true);
  if (edit.mask !== undefined) out = withChoice(out, 'mask', edit.mask);
  if (edit.scale !== undefined) out = withChoice(out, 'scale', edit.scale);
  if (edit.empty_row !== undefined) out = withChoice(out, 'emptyRow', edit.empty_row);
  return out;
}

export interface History {
  readonly past: readonly Edits[];
  readonly now: Edits;
  readonly future: readonly Edits[];
  readonly before: Edits;  // what ghosts compare with: the edits just left
}

export function startHistory(now: Edits): History {
  return {past: [], now, future: [], before: untouched(now)};
}

export function edited(history: History, now: Edits): History {
  if (areSame(history.now, now)) return history;
  return {past: [...history.past, history.now], now, future: [], before: history.now};
}

// One more step of a change that is being made: undo takes back all of it at once.
export function continued(history: History, now: Edits): History {
  return areSame(history.now, now) ? history : {...history, now, future: []};
}

export function undone({past, now, future, before}: History): History {
  const last = past.at(-1);
  if (!last) return {past, now, future, before};
  return {past: past.slice(0, -1), now: last, future: [now, ...future], before: now};
}

export function redone({past, now, future, before}: History): History {
  const [next, ...later] = future;
  if (!next) return {past, now, future, before};
  return {past: [...past, now], now: next, future: later, before: now};
}
