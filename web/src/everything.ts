// The engine with every call (bindings/wasm/calls_all.cc): exports, mistakes, sweeps and what later
// pages ask for. Larger, so it is loaded when it is first needed; a page that is one file has it from
// the start.
import everythingUrl from 'glasshead.wasm?url';
import {signal} from '@preact/signals';

import type {Answer, Engine} from './engine';
import {loadEngine} from './load';

let loading: Promise<Engine> | undefined;

// How many answers are being waited for.
export const pending = signal(0);

export function haveEverything(engine: Engine): void {
  loading = Promise.resolve(engine);
}

function everything(): Promise<Engine> {
  loading ??= loadEngine(everythingUrl);
  loading.catch(() => { loading = undefined; });  // the next call tries again
  return loading;
}

export async function callEverything(request: object): Promise<Answer> {
  pending.value++;
  try {
    const engine = await everything();
    await new Promise((done) => { setTimeout(done); });  // what the page says now is seen first
    return engine.call(request);
  } catch (error) {
    return {ok: false, problems: [{where: 'engine', what: `its larger part could not be loaded (${String(error)}); try again`}]};
  } finally {
    pending.value--;
  }
}
