// The engine: the library's own sources as a WebAssembly module (bindings/wasm). A request goes in
// as JSON, the answer comes out as the bytes that the command prints. A trap leaves the problems
// behind; the next call gets a fresh instance.

export interface Problem {
  where: string;
  what: string;
}

export type Answer = {ok: true; bytes: string} | {ok: false; problems: Problem[]};

interface Exports {
  memory: WebAssembly.Memory;
  _initialize(): void;
  gh_alloc(size: number): number;
  gh_free(address: number): void;
  gh_call(address: number, size: number): number;
  gh_answer(): number;
  gh_failure(): number;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export class Engine {
  private exports: Exports | undefined;

  constructor(private readonly module: WebAssembly.Module) {}

  call(request: object): Answer {
    const bytes = encoder.encode(JSON.stringify(request));
    const engine = this.instance();
    const failure = engine.gh_failure();
    try {
      const address = engine.gh_alloc(bytes.length);
      new Uint8Array(engine.memory.buffer, address, bytes.length).set(bytes);
      const isOk = engine.gh_call(address, bytes.length) === 1;
      const answer = pair(engine, engine.gh_answer());
      engine.gh_free(address);
      return isOk ? {ok: true, bytes: answer} : {ok: false, problems: problemsOf(answer)};
    } catch (error) {
      this.exports = undefined;
      if (!(error instanceof WebAssembly.RuntimeError)) throw error;
      return {ok: false, problems: afterTrap(engine, failure, error)};
    }
  }

  private instance(): Exports {
    if (this.exports) return this.exports;
    // The module's libc asks for output functions that nothing calls.
    const stub = () => 0;
    const wasi = Object.fromEntries(
        WebAssembly.Module.imports(this.module).map(({name}) => [name, stub]));
    const instance = new WebAssembly.Instance(this.module, {wasi_snapshot_preview1: wasi});
    const exports = instance.exports as unknown as Exports;
    exports._initialize();
    this.exports = exports;
    return exports;
  }
}

// What is at `address`: how long a text is, and where it starts.
function pair(engine: Exports, address: number): string {
  const view = new DataView(engine.memory.buffer);
  const size = view.getUint32(address, true), start = view.getUint32(address + 4, true);
  return decoder.decode(new Uint8Array(engine.memory.buffer, start, size));
}

function problemsOf(answer: string): Problem[] {
  return (JSON.parse(answer) as {problems: Problem[]}).problems;
}

function afterTrap(engine: Exports, failure: number, error: Error): Problem[] {
  try {
    const problems = problemsOf(pair(engine, failure));
    if (problems.length > 0) return problems;
  } catch {
    // nothing was left behind: it stopped for another reason
  }
  const isMemory = /memory|allocat/i.test(error.message);
  return [{
    where: 'engine',
    what: isMemory ? 'out of memory: the case is too large for this page'
                   : `stopped (${error.message}); your edits are kept`,
  }];
}
