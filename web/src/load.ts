// The engine's modules: fetched, packed as tools/pack.mjs does it, or out of the page itself.
import {embeddedModule} from './embedded';
import {Engine} from './engine';
import {unpacked} from './lzma';
import {joined} from './module_streams';

const isOneFile = import.meta.env.MODE === 'one-file';

export async function loadModule(url: string): Promise<WebAssembly.Module> {
  if (embeddedModule) return WebAssembly.compile(embeddedModule);
  if (isOneFile) throw new Error('the page was not unpacked');
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
  return WebAssembly.compile(joined(unpacked(new Uint8Array(await response.arrayBuffer()))));
}

export const loadEngine = async (url: string): Promise<Engine> => new Engine(await loadModule(url));
