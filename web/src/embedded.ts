// What a page that is one file carries in itself: its case, and packed the rest (unpack_page.ts).
//
//   <script type="application/json" id="glasshead-case">{"name":"mine","text":"{...}","start":"#/..."}</script>
import {moduleKey} from './module_key';

export interface EmbeddedCase {
  name: string;
  text: string;
  start?: string;  // opened where the address names nothing
}

function readCase(): EmbeddedCase | undefined {
  const content = document.getElementById('glasshead-case')?.textContent?.trim();
  if (content === undefined || content === '') return undefined;
  const {name, text, start} = JSON.parse(content) as Partial<EmbeddedCase>;
  if (name === undefined || text === undefined) return undefined;
  return start === undefined ? {name, text} : {name, text, start};
}

export const embeddedCase = readCase();

// The engine's module, where it was unpacked with the page: no request is made, and a page in a frame
// without an origin can do it.
export const embeddedModule = (globalThis as {[moduleKey]?: Uint8Array<ArrayBuffer>})[moduleKey];
export const hasEmbeddedModule = (): boolean => embeddedModule !== undefined;
