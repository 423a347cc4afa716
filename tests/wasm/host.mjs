// Runs the module as a page would: host.mjs MODULE < requests, one JSON request a line. For each it prints one
// line: "ok <bytes as base64>", "problems <...>", or "trap <what the engine left behind>", and after a trap goes
// on with a fresh instance.
import {readFileSync} from 'node:fs';
import {createInterface} from 'node:readline';

const module = new WebAssembly.Module(readFileSync(process.argv[2]));
// The module's libc asks for output functions that nothing calls.
const stub = () => 0;
const wasi = Object.fromEntries(WebAssembly.Module.imports(module).map(({name}) => [name, stub]));

function start() {
  const instance = new WebAssembly.Instance(module, {wasi_snapshot_preview1: wasi});
  instance.exports._initialize();
  return instance.exports;
}

function pair(engine, address) {
  const view = new DataView(engine.memory.buffer);
  const size = view.getUint32(address, true), data = view.getUint32(address + 4, true);
  return Buffer.from(new Uint8Array(engine.memory.buffer, data, size)).toString('base64');
}

let engine = start();
for await (const line of createInterface({input: process.stdin})) {
  const request = new TextEncoder().encode(line);
  const failure = engine.gh_failure();
  try {
    const address = engine.gh_alloc(request.length);
    new Uint8Array(engine.memory.buffer, address, request.length).set(request);
    const ok = engine.gh_call(address, request.length);
    console.log(ok ? 'ok' : 'problems', pair(engine, engine.gh_answer()));
    engine.gh_free(address);
  } catch (error) {
    if (!(error instanceof WebAssembly.RuntimeError)) throw error;
    console.log('trap', pair(engine, failure), error.message);
    engine = start();
  }
}
