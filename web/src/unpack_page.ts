// The first script of a page that is one file: the rest of it stands packed in an element of the page.
// Unpacked that is how long the script and the style are (32 bits each), the script, the style and
// the parts of the engine's module (tools/one_file.mjs). The policy in the page's head names the hashes of both
// scripts, so that nothing else runs.
import {unpacked} from './lzma';
import {moduleKey} from './module_key';
import {joined} from './module_streams';
import {bytesOf} from './text_bytes';

function begin(): void {
  const bytes = unpacked(bytesOf(document.getElementById('glasshead-packed')!.textContent!.trim()));
  const sizes = new DataView(bytes.buffer), decoder = new TextDecoder();
  const codeEnd = 8 + sizes.getUint32(0), styleEnd = codeEnd + sizes.getUint32(4);
  const add = (name: 'script' | 'style', content: Uint8Array) => {
    const element = document.createElement(name);
    if (element instanceof HTMLScriptElement) element.type = 'module';
    element.textContent = decoder.decode(content);
    document.head.append(element);
  };
  (globalThis as {[moduleKey]?: Uint8Array})[moduleKey] = joined(bytes.subarray(styleEnd));
  add('style', bytes.subarray(codeEnd, styleEnd));
  add('script', bytes.subarray(8, codeEnd));
}

try {
  begin();
} catch (error) {
  document.getElementById('page')!.textContent = `This page cannot be opened: ${error}`;
}
