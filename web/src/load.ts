// The engine's module: fetched, or out of the page itself.
import {embeddedModule, hasEmbeddedModule} from './embedded';
import {Engine} from './engine';

async function fetched(url: string): Promise<ArrayBuffer> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
  return response.arrayBuffer();
}

export async function loadEngine(url: string): Promise<Engine> {
  const bytes = await (hasEmbeddedModule() ? embeddedModule() : fetched(url));
  return new Engine(await WebAssembly.compile(bytes));
}
