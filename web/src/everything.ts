// The engine with every call that lessons make (bindings/wasm/calls_lesson.cc): derivations, exports,
// mistakes, sweeps. Larger, so it is loaded when it is first needed; a page that is one file has it
// from the start.
import everythingUrl from 'lesson.wasm.lzma?url';
import {signal} from '@preact/signals';

import type {Answer, Engine} from './engine';
import {loadEngine} from './load';

let loading: Promise<Engine> | undefined;

// How many answers are being waited for.
export const pending = signal(0);

// Once it is here. Until then what needs it at once shows what it can without, and asks for it with
// wantEverything.
export const larger = signal<Engine | undefined>(undefined);
export const largerTrouble = signal('');

export function haveEverything(engine: Engine): void {
  loading = Promise.resolve(engine);
  larger.value = engine;
}

function everything(): Promise<Engine> {
  loading ??= loadEngine(everythingUrl).then((engine) => larger.value = engine);
  loading.catch(() => { loading = undefined; });  // the next call tries again
  return loading;
}

const notLoaded = (error: unknown) => `the engine’s larger part could not be loaded (${String(error)}); try again`;

// May be called where signals are computed, which change none meanwhile.
export function wantEverything(): void {
  queueMicrotask(async () => {
    pending.value++;
    largerTrouble.value = await everything().then(() => '', notLoaded);
    pending.value--;
  });
}

export async function callEverything(request: object): Promise<Answer> {
  pending.value++;
  try {
    const engine = await everything();
    await new Promise((done) => { setTimeout(done); });  // what the page says now is seen first
    return engine.call(request);
  } catch (error) {
    return {ok: false, problems: [{where: 'engine', what: notLoaded(error)}]};
  } finally {
    pending.value--;
  }
}
