// The whole engine (glasshead.wasm), for the pages that need more than lessons do: fetched when the
// first of them asks, and run beside the page, so that a long answer stops nothing.
import fullUrl from 'glasshead.wasm.lzma?url';

import {type Answer, Engine} from './engine';
import {loadModule} from './load';

export const kNotLoaded = 'engine-not-loaded';

let module: Promise<WebAssembly.Module> | undefined;

// One question at a time: a new one takes the place of one that is still being answered, which then
// ends with undefined. What cannot be answered is a problem, never an exception.
export class Lane {
  private worker: Worker | undefined;
  private alone: Engine | undefined;  // where a page may start no worker
  private waiting: ((answer: Answer | undefined) => void) | undefined;
  private turn = 0;

  async call(request: object): Promise<Answer | undefined> {
    const mine = ++this.turn;
    let loaded: WebAssembly.Module;
    try {
      loaded = await (module ??= loadModule(fullUrl));
    } catch (error) {
      module = undefined;
      return {ok: false, problems: [{where: kNotLoaded, what: String(error)}]};
    }
    if (mine !== this.turn) return undefined;
    if (this.waiting) {
      this.stop();
      this.end(undefined);
    }
    if (!this.worker && !this.alone) this.start(loaded);
    if (this.alone) return this.alone.call(request);
    return new Promise((done) => {
      this.waiting = done;
      this.worker!.postMessage({request});
    });
  }

  private start(loaded: WebAssembly.Module): void {
    try {
      this.worker = new Worker(new URL('./full_worker.ts', import.meta.url), {type: 'module'});
    } catch {
      this.alone = new Engine(loaded);
      return;
    }
    this.worker.onmessage = ({data}: MessageEvent<Answer>) => this.end(data);
    this.worker.onerror = () => {
      this.stop();
      this.end({ok: false, problems: [{where: 'engine', what: 'stopped; what you gave is kept'}]});
    };
    this.worker.postMessage({module: loaded});
  }

  private stop(): void {
    this.worker?.terminate();
    this.worker = undefined;
  }

  private end(answer: Answer | undefined): void {
    const done = this.waiting;
    this.waiting = undefined;
    done?.(answer);
  }
}
