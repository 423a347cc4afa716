// Bytes as text that HTML, attributes and JSON carry unchanged: four bytes as five characters, a
// quarter more instead of base64's third. tools/pack.mjs writes it. Of the printable characters those
// that something would escape are left out: " & ' < > \
const kAlphabet = (() => {
  let all = '';
  for (let code = 33; code < 127; ++code) all += '"&\'<>\\'.includes(String.fromCharCode(code)) ? '' : String.fromCharCode(code);
  return all.slice(0, 85);
})();

export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const digit = new Int8Array(128).fill(-1);
  for (let n = 0; n < 85; ++n) digit[kAlphabet.charCodeAt(n)] = n;
  const out = new Uint8Array((text.length / 5 | 0) * 4), view = new DataView(out.buffer);
  for (let from = 0, to = 0; to < out.length; to += 4) {
    let four = 0;
    for (let n = 0; n < 5; ++n) {
      const value = digit[text.charCodeAt(from++)] ?? -1;
      if (value < 0) throw new Error('the page was changed on its way: a character is wrong');
      four = four * 85 + value;
    }
    view.setUint32(to, four);
  }
  return out;
}
