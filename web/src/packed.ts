// Many edits in an address: "e=X.1.0:1,…" as "z", the same list as JSON, deflated, in base64url.
const kMostBytes = 1 << 20;  // of what a link may unpack to

async function through(bytes: Uint8Array, by: CompressionStream | DecompressionStream): Promise<Uint8Array> {
  const reader = new Blob([bytes as Uint8Array<ArrayBuffer>]).stream().pipeThrough(by).getReader();
  const parts: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const {done, value} = await reader.read();
    if (done) break;
    size += value.length;
    if (size > kMostBytes) throw new Error('it is too large');
    parts.push(value);
  }
  const all = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

const toText = (bytes: Uint8Array) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
    .replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
const toBytes = (text: string) =>
  Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (char) => char.charCodeAt(0));

// An address with its edits packed.
export async function packed(fragment: string): Promise<string> {
  const found = /([?&])e=([^&]*)/.exec(fragment);
  if (!found) return fragment;
  const edits = decodeURIComponent(found[2]!).split(',').map((part) => {
    const colon = part.lastIndexOf(':');
    return [part.slice(0, colon), part.slice(colon + 1)];
  });
  const bytes = await through(new TextEncoder().encode(JSON.stringify(edits)), new CompressionStream('deflate-raw'));
  return fragment.replace(found[0], `${found[1]}z=${toText(bytes)}`);
}

// The address as it was before. One that can't be unpacked stays, and is then named by what reads it.
export async function unpacked(fragment: string): Promise<string> {
  const found = /([?&])z=([^&]*)/.exec(fragment);
  if (!found) return fragment;
  try {
    const text = new TextDecoder().decode(await through(toBytes(found[2]!), new DecompressionStream('deflate-raw')));
    const edits = JSON.parse(text) as unknown;
    const isEdit = (one: unknown) => Array.isArray(one) && one.length === 2 && one.every((part) => typeof part === 'string');
    if (!Array.isArray(edits) || !edits.every(isEdit)) return fragment;
    const list = (edits as [string, string][]).map(([place, number]) => encodeURIComponent(`${place}:${number}`)).join(',');
    return fragment.replace(found[0], () => `${found[1]}e=${list.replaceAll('%3A', ':').replaceAll('%2B', '+')}`);
  } catch {
    return fragment;
  }
}
