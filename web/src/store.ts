// The page's state. Views read the engine's answer to the edits and nothing else; edits change only
// through these functions.
import {batch, computed, effect, signal} from '@preact/signals';

import {type Address, format, kBlankSheet, kMostAddress, kMostPins, parse, type Shown} from './address';
import type {EngineEdit, Origin, View} from './answers';
import {
  areSame, continued, edited, type Edits, type History, isEdited, noEdits, redone, startHistory, toEngine,
  undone, untouched, withChoice, withHidden, withNumber,
} from './edits';
import type {Answer, Engine, Problem} from './engine';
import {callEverything, larger, pending, wantEverything} from './everything';
import {afterFrame} from './frame';
import {idOfSel, placeOfSel} from './ids';
import {caseNames, caseText, fetchedCase, firstCase} from './lessons';
import {type Change, isChange, merged} from './merge';
import {loadPacked} from './pages';

let engine: Engine;

export type Page = Address['page'] | 'doctor';
export const page = signal<Page>('learn');
export const caseName = signal(firstCase);
export const history = signal<History>(startHistory(noEdits));
export const shown = signal<Shown>({});
export const baseline = signal<Edits>(noEdits);
// Ghosts compare with the edit before, or with the baseline.
export const compares = signal<'last' | 'baseline'>('baseline');
export const linkTrouble = signal<string[]>([]);
export const keysOn = signal(true);
// Keys of the address that nothing here knows: of later versions, and of parts that are fetched later.
const unknown = signal<Address['unknown']>([]);

export const edits = computed(() => history.value.now);

export const kept = (key: string): string | undefined => unknown.value.find(([name]) => name === key)?.[1];
export function keepAlong(key: string, value: string): void {
  unknown.value = [...unknown.peek().filter(([name]) => name !== key), [key, value]];
}

function request(call: string, more: object, of: Edits): object {
  const name = caseName.peek();
  return {call, name, case: of.base ?? caseText(name) ?? '', edit: toEngine(of), ...more};
}

const ask = (call: string, more: object = {}, of: Edits = edits.peek(), by = engine): Answer =>
  by.call(request(call, more, of));

function answerOf<T>(answer: Answer): T | undefined {
  return answer.ok ? JSON.parse(answer.bytes) as T : undefined;
}

export type Outcome = {view: View; problems: Problem[]; isRefused: boolean};

// The last view that could be made stays while an edit is refused.
let lastGood: View | undefined;
let lastCase = '', lastBy: Engine;

export const outcome = computed<Outcome | undefined>(() => {
  const name = caseName.value, {now, before} = history.value, {hand} = shown.value;
  const compared = compares.value === 'baseline' ? baseline.value : before;
  const read = name + (now.base ?? '');
  if (read !== lastCase) lastGood = undefined;
  lastCase = read;
  const more: {by_hand?: number; before?: EngineEdit; since?: number} = {};
  // Paper's arithmetic is in the engine's larger part; until that is here the exact numbers stand.
  const by = hand === undefined ? engine : larger.value ?? engine;
  if (hand !== undefined && larger.value) more.by_hand = hand;
  else if (hand !== undefined) wantEverything();
  if (compared.base === now.base && !areSame(compared, now)) more.before = toEngine(compared);
  if (lastGood !== undefined && lastBy === by) more.since = lastGood.serial;
  lastBy = by;
  const answer = ask('view', more, now, by);
  if (answer.ok) {
    const said = JSON.parse(answer.bytes) as View | Change;
    lastGood = isChange(said) ? merged(lastGood!, said) : said;
    return {view: lastGood, problems: lastGood.refused, isRefused: false};
  }
  if (lastGood === undefined) {
    const bare = answerOf<View>(ask('view', {}, untouched(now)));
    if (bare === undefined) return undefined;
    lastGood = bare;
  }
  return {view: lastGood, problems: answer.problems, isRefused: true};
});

const pins = computed(() => shown.value.pin?.split(',') ?? []);

// The cell whose origin is shown: the one that was pinned last, else the chosen one.
export const traced = computed(() => pins.value.at(-1) ?? shown.value.sel);

export const origin = computed<Origin | undefined>(() => {
  const place = placeOfSel(traced.value ?? '');
  void history.value;
  return place && answerOf<Origin>(ask('origin', place));
});

// What the page's own module answers (bindings/wasm/calls_learn.cc).
const kOwn = ['view', 'origin', 'step'];

// Undefined also while the engine's larger part is still being loaded; what reads this in a signal is
// computed again when it is there.
export function askEngine<T>(call: string, more: object = {}): T | undefined {
  const by = kOwn.includes(call) ? engine : larger.value;
  if (by) return answerOf<T>(ask(call, more, edits.peek(), by));
  wantEverything();
  return undefined;
}

// What is shown beside the case: a mistake, or by hand.
function shownBeside(): {mistake?: string; by_hand?: number} {
  const {mistake, hand} = shown.peek();
  if (mistake !== undefined) return {mistake};
  return hand === undefined ? {} : {by_hand: hand};
}

// What takes the engine's larger part, which may have to be loaded first.
export const askMore = (call: string, more: object = {}): Promise<Answer> =>
  callEverything(request(call, more, edits.peek()));

// The command's bytes.
export const exported = (format: string) => askMore('trace', {format, ...shownBeside()});
export const asCode = (language: string) => askMore('copy', {as: language, ...shownBeside()});

function change(next: Edits): void {
  batch(() => {
    history.value = edited(history.value, next);
    compares.value = 'last';
  });
}

// What the engine refuses is taken back at once, before anything is drawn; why is returned.
export function setNumber(place: string, text: string): string | undefined {
  const kept = history.peek(), compared = compares.peek();
  change(withNumber(edits.peek(), place, text));
  const now = outcome.peek();
  if (!now?.isRefused) return undefined;
  batch(() => {
    history.value = kept;
    compares.value = compared;
  });
  return now.problems.map(({what}) => what).join('; ');
}
// The same while a slider moves: all its steps are one change.
export function slideNumber(place: string, text: string): void {
  history.value = continued(history.peek(), withNumber(edits.peek(), place, text));
}
export function hideKey(key: number, isHidden: boolean): void {
  change(withHidden(edits.peek(), key, isHidden));
}
export function choose(name: 'mask' | 'scale' | 'emptyRow', value: string | undefined): void {
  change(withChoice(edits.peek(), name, value));
}
// Pairs one by one: what is hidden now, by any rule, becomes a mask of its own.
export function setPairs(rows: readonly (readonly boolean[])[]): void {
  const text = rows.map((row) => row.map((isAllowed) => (isAllowed ? '1' : '0')).join('')).join('/');
  change({...withChoice(edits.peek(), 'mask', `rows:${text}`), hide: []});
}
export const replaceEdits = change;
// Another case in the sheet, with what was chosen about it as far as it still fits.
export function replaceSheet(base: string): void {
  const {mask, scale, hide, emptyRow} = edits.peek();
  let next: Edits = {...noEdits, base};
  const take = (more: Partial<Edits>): void => {
    if (ask('view', {}, {...next, ...more}).ok) next = {...next, ...more};
  };
  if (mask !== undefined) take({mask});
  if (scale !== undefined) take({scale});
  if (hide.length > 0) take({hide});
  if (emptyRow !== undefined) take({emptyRow});
  change(next);
}
export function reset(): void {
  change(untouched(edits.peek()));
}
export function undo(): void {
  batch(() => {
    history.value = undone(history.value);
    compares.value = 'last';
  });
}
export function redo(): void {
  batch(() => {
    history.value = redone(history.value);
    compares.value = 'last';
  });
}
export function compareWithBaseline(): void {
  compares.value = compares.value === 'baseline' ? 'last' : 'baseline';
}
export function setBaseline(): void {
  baseline.value = edits.peek();
}
export function show(change: {[K in keyof Shown]?: Shown[K] | undefined}): void {
  const now = shown.peek(), next = {...now, ...change};
  if ((Object.keys(change) as (keyof Shown)[]).every((key) => now[key] === change[key])) return;
  for (const key of Object.keys(next) as (keyof Shown)[]) if (next[key] === undefined) delete (next as Record<string, unknown>)[key];
  shown.value = next as Shown;
}

// What the cell came from stays outlined, wherever one goes on. One that the last pinned cell came
// from is pinned behind it; one of the chain leads back to it; the last one is let go of.
export function pin(sel: string): void {
  const chain = pins.peek(), at = chain.indexOf(sel), id = idOfSel(sel) ?? '';
  if (at >= 0 && at === chain.length - 1) return unpin();
  const isBehind = chain.length > 0 && (origin.peek()?.from.includes(id) ?? false);
  const next = at >= 0 ? chain.slice(0, at + 1) : isBehind ? [...chain, sel].slice(-kMostPins) : [sel];
  show({pin: next.join(',')});
}
export function unpin(): void {
  if (shown.peek().pin !== undefined) show({pin: undefined});
}

export function stepped(text: string, by: string): string | undefined {
  const answer = engine.call({call: 'step', text, by});
  return answerOf<{text: string}>(answer)?.text;
}

// A link's edits, one by one: what the engine refuses is left out and named.
function soundPart(wanted: Edits, wrong: string[]): Edits {
  if (!isEdited(wanted) || ask('view', {}, wanted).ok) return wanted;
  let sound = untouched(wanted);
  const take = (next: Edits, name: string): void => {
    if (ask('view', {}, next).ok) sound = next;
    else wrong.push(name);
  };
  for (const [place, text] of wanted.set) take(withNumber(sound, place, text), `e=${place}:${text}`);
  for (const name of ['mask', 'scale', 'emptyRow'] as const)
    if (wanted[name] !== undefined) take(withChoice(sound, name, wanted[name]), `${name}=${wanted[name]}`);
  for (const key of wanted.hide) take(withHidden(sound, key, true), `hide=${key}`);
  return sound;
}

const wholeAddress = computed(() => format({
  page: page.value === 'sheet' ? 'sheet' : 'learn', name: caseName.value, edits: edits.value, shown: shown.value, unknown: unknown.value,
}));

// Whether a sheet's case is too long to stand in the address; it is then a file's to keep.
export const isTooLong = computed(() => edits.value.base !== undefined && wholeAddress.value.length > kMostAddress);
export const address = computed(() => (isTooLong.value ? '#/sheet?v=1' : wholeAddress.value));


// A link's sheet that the engine can't read becomes a blank one; why is said.
function soundSheet(wanted: Edits, wrong: string[]): Edits {
  const answer = ask('view', {}, untouched(wanted));
  if (answer.ok) return soundPart(wanted, wrong);
  wrong.push(...answer.problems.map(({where, what}) => `the sheet’s case, ${where}: ${what}`));
  return {...noEdits, base: kBlankSheet};
}

// The doctor's page reads its own address.
export const doctorLink = signal<{fragment: string}>({fragment: ''});

function openPlain(fragment: string): void {
  const {address: read, wrong} = parse(fragment, firstCase);
  batch(() => {
    page.value = read.page;
    unknown.value = read.unknown;
    const isSheet = read.page === 'sheet', isKnown = isSheet || caseText(read.name) !== undefined;
    if (!isKnown) wrong.push(`the case ${read.name}${caseNames().includes(read.name) ? ', which cannot be fetched now' : ''}`);
    caseName.value = isKnown ? read.name : firstCase;
    history.value = startHistory(isSheet ? soundSheet(read.edits, wrong) : isKnown ? soundPart(read.edits, wrong) : noEdits);
    baseline.value = untouched(edits.peek());
    compares.value = 'baseline';
    shown.value = read.shown;
    linkTrouble.value = wrong;
  });
}

let turn = 0;  // of what takes a moment: a later one counts

// Many edits are packed; what unpacks them is fetched when a link has them.
export async function open(fragment: string): Promise<void> {
  const mine = ++turn;
  if (/^#?\/doctor\b/.test(fragment)) {
    batch(() => {
      page.value = 'doctor';
      doctorLink.value = {fragment};
      linkTrouble.value = [];
    });
    return;
  }
  const packed = /[?&]z=([^&]*)/.exec(fragment);
  if (!packed) return openPlain(fragment);
  try {
    const plain = await (await loadPacked()).unpacked(fragment);
    if (mine === turn) openPlain(plain);
  } catch (error) {
    if (mine !== turn) return;
    openPlain(fragment.replace(packed[0], ''));
    keepAlong('z', packed[1]!);
    linkTrouble.value = [...linkTrouble.peek(), `z (what unpacks it could not be loaded, ${String(error)}; reload)`];
  }
}

// The browser's address as this page left or last read it. Where that has become another, it is on its way here as an event,
// and must not be written over.
let seen = '';

// An address of the page in the browser's. In a frame without an address of its own it can't be
// written, and the page works without.
export function write(fragment: string, how: 'pushState' | 'replaceState' = 'replaceState'): void {
  if (how === 'replaceState' && (fragment === location.hash || location.hash !== seen)) return;
  try {
    window.history[how](null, '', location.href.split('#')[0] + fragment);
    seen = location.hash;
  } catch {
    // stays as it is
  }
}

// Which case has to be here before an address can be opened.
function caseOf(fragment: string): string {
  const {name, page: where} = parse(fragment, firstCase).address;
  return where === 'learn' && caseNames().includes(name) ? name : firstCase;
}

export async function fetchCaseOf(fragment: string): Promise<void> {
  if (await fetchedCase(caseOf(fragment)) === undefined) await fetchedCase(firstCase);
}

let isUnkept = false;  // the state is not yet in the address
let packing: string | undefined;  // an address that is there as soon as it is packed

// Opens an address, its case first; where several are on their way, the last.
let heading = 0;
async function arrive(fragment: string): Promise<void> {
  isUnkept = false;  // what was here is left behind
  packing = undefined;
  const mine = ++heading;
  if (caseText(caseOf(fragment)) === undefined) {
    pending.value++;
    await fetchCaseOf(fragment);
    pending.value--;
  }
  if (mine === heading) await open(fragment);
}

// A link within the page.
export function go(fragment: string): void {
  keepNow();
  write(fragment, 'pushState');
  void arrive(fragment);
}

// The state, kept in the address.
async function keep(fragment: string, isPacked: boolean): Promise<void> {
  const mine = ++turn;
  packing = isPacked ? fragment : undefined;
  if (!isPacked) return write(fragment);
  const short = await loadPacked().then(({packed}) => packed(fragment)).catch(() => fragment);
  if (mine !== turn) return;
  packing = undefined;
  write(short);
}

const kMostPlain = 40;  // edits

// Browsers stop taking addresses from a page that writes too many: Chromium above 200 in 30 seconds, as a moving slider would.
const kBetween = 200;  // ms from one to the next
let resting: number | undefined;

// Writing an address takes longer than an edit's arithmetic, so it waits until the edit is on the screen.
export function keepNow(): void {
  if (!isUnkept) return;
  isUnkept = false;
  if (page.peek() === 'doctor') return;
  clearTimeout(resting);
  resting = window.setTimeout(() => {
    resting = undefined;
    keepNow();  // what changed meanwhile
  }, kBetween);
  void keep(address.peek(), edits.peek().set.length > kMostPlain);
}
function keepSoon(): void {
  if (isUnkept) return;
  isUnkept = true;
  if (resting !== undefined) return;
  afterFrame(keepNow);
}

// Nothing waits for a page that is left: many edits then stand in the address as they are.
function keepLeaving(): void {
  const left = isUnkept ? address.peek() : packing;
  if (left === undefined || page.peek() === 'doctor') return;
  isUnkept = false;
  ++turn;
  write(left);
}

export async function start(loaded: Engine, fragment: string): Promise<void> {
  engine = loaded;
  await open(fragment);
  seen = location.hash;
  effect(() => {
    void [page.value, caseName.value, edits.value, shown.value, unknown.value];
    keepSoon();
  });
  window.addEventListener('pagehide', keepLeaving);
  window.addEventListener('hashchange', () => {
    seen = location.hash;
    if (page.peek() === 'doctor' || location.hash !== address.peek()) void arrive(location.hash);
  });
}
