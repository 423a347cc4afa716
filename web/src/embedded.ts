// What a page that is one file carries in itself: its case, and the engine's module.
//
//   <script type="application/json" id="glasshead-case">{"name":"mine","text":"{...}","start":"#/..."}</script>
//   <script type="text/plain" id="glasshead-module">the module, gzip, base64</script>

export interface EmbeddedCase {
  name: string;
  text: string;
  start?: string;  // opened where the address names nothing
}

const contentOf = (id: string): string | undefined => document.getElementById(id)?.textContent?.trim();

function readCase(): EmbeddedCase | undefined {
  const content = contentOf('glasshead-case');
  if (content === undefined || content === '') return undefined;
  const {name, text, start} = JSON.parse(content) as Partial<EmbeddedCase>;
  if (name === undefined || text === undefined) return undefined;
  return start === undefined ? {name, text} : {name, text, start};
}

export const embeddedCase = readCase();

export const hasEmbeddedModule = (): boolean => contentOf('glasshead-module') !== undefined;

// No request is made, and a page in a frame without an origin can do it.
export async function embeddedModule(): Promise<ArrayBuffer> {
  const bytes = Uint8Array.from(atob(contentOf('glasshead-module') ?? ''), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).arrayBuffer();
}
