// Unpacks what tools/pack.mjs packed: the engine's modules are stored so, a fifth smaller than gzip
// makes them, also by servers that compress nothing. After the LZMA specification of Igor Pavlov
// (7-zip.org/sdk.html): a range coder, for which every bit is guessed from those before it, and
// matches into what is already unpacked. What is no such file, or not all of one, is an Error.
const kStates = 12, kTop = 2 ** 24, kHalf = 1024;
const kLengthTrees = 2 + (16 << 4) + 256;  // choices, short, middle, long
const kMiddle = 2 + (16 << 3), kLong = kMiddle + (16 << 3);

export function unpacked(packed: Uint8Array): Uint8Array<ArrayBuffer> {
  const header = new DataView(packed.buffer, packed.byteOffset, packed.byteLength);
  const kind = packed.length > 18 ? packed[0]! : 225;
  if (kind >= 225 || header.getUint32(9, true) !== 0) throw new Error('not a packed module');
  const lc = kind % 9, lp = ((kind / 9) | 0) % 5, pb = (kind / 45) | 0;
  const out = new Uint8Array(header.getUint32(5, true));

  const odds = (count: number) => new Uint16Array(count).fill(kHalf);
  const isMatch = odds(kStates << 4), isRep = odds(kStates), isRep0 = odds(kStates), isRep1 = odds(kStates);
  const isRep2 = odds(kStates), isRep0Long = odds(kStates << 4), literals = odds(0x300 << (lc + lp));
  const slots = odds(4 << 6), far = odds(128), low = odds(16), lengths = odds(kLengthTrees), repLengths = odds(kLengthTrees);

  let from = 18, range = -1 >>> 0, code = header.getUint32(14, false);

  const bit = (table: Uint16Array, at: number): number => {
    const odd = table[at]!, bound = (range >>> 11) * odd;
    let is = 0;
    if (code < bound) {
      range = bound;
      table[at] = odd + ((2048 - odd) >> 5);
    } else {
      range -= bound;
      code -= bound;
      table[at] = odd - (odd >> 5);
      is = 1;
    }
    if (range < kTop) {
      range = (range << 8) >>> 0;
      code = ((code << 8) | packed[from++]!) >>> 0;
    }
    return is;
  };
  const tree = (table: Uint16Array, base: number, bits: number): number => {
    let at = 1;
    for (let n = 0; n < bits; ++n) at = (at << 1) | bit(table, base + at);
    return at - (1 << bits);
  };
  const backwards = (table: Uint16Array, base: number, bits: number): number => {
    let at = 1, value = 0;
    for (let n = 0; n < bits; ++n) {
      const is = bit(table, base + at);
      at = (at << 1) | is;
      value |= is << n;
    }
    return value;
  };
  const plain = (bits: number): number => {  // bits that nothing is guessed of
    let value = 0;
    for (let n = 0; n < bits; ++n) {
      range >>>= 1;
      const is = code >= range ? 1 : 0;
      if (is) code -= range;
      value = (value << 1) | is;
      if (range < kTop) {
        range = (range << 8) >>> 0;
        code = ((code << 8) | packed[from++]!) >>> 0;
      }
    }
    return value;
  };
  const length = (table: Uint16Array, place: number): number =>
    !bit(table, 0) ? tree(table, 2 + (place << 3), 3)
    : !bit(table, 1) ? 8 + tree(table, kMiddle + (place << 3), 3) : 16 + tree(table, kLong, 8);

  let at = 0, state = 0, rep0 = 0, rep1 = 0, rep2 = 0, rep3 = 0;
  while (at < out.length) {
    if (from > packed.length + 4) throw new Error('a packed module is cut short');
    const place = at & ((1 << pb) - 1);
    if (!bit(isMatch, (state << 4) + place)) {
      const before = at > 0 ? out[at - 1]! : 0;
      const base = 0x300 * (((at & ((1 << lp) - 1)) << lc) + (before >> (8 - lc)));
      let symbol = 1;
      if (state >= 7) {  // after a match the byte that would have gone on with it helps guessing
        for (let expected = out[at - rep0 - 1]!; symbol < 0x100;) {
          const guess = (expected >> 7) & 1;
          expected <<= 1;
          const is = bit(literals, base + ((1 + guess) << 8) + symbol);
          symbol = (symbol << 1) | is;
          if (is !== guess) break;
        }
      }
      while (symbol < 0x100) symbol = (symbol << 1) | bit(literals, base + symbol);
      out[at++] = symbol;
      state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
      continue;
    }
    let count: number;
    if (bit(isRep, state)) {
      if (!bit(isRep0, state)) {
        if (!bit(isRep0Long, (state << 4) + place)) {
          if (rep0 >= at) throw new Error('a packed module is broken');
          out[at] = out[at - rep0 - 1]!;
          ++at;
          state = state < 7 ? 9 : 11;
          continue;
        }
      } else {
        let distance = rep1;
        if (bit(isRep1, state)) {
          distance = rep2;
          if (bit(isRep2, state)) {
            distance = rep3;
            rep3 = rep2;
          }
          rep2 = rep1;
        }
        rep1 = rep0;
        rep0 = distance;
      }
      count = 2 + length(repLengths, place);
      state = state < 7 ? 8 : 11;
    } else {
      rep3 = rep2;
      rep2 = rep1;
      rep1 = rep0;
      count = 2 + length(lengths, place);
      state = state < 7 ? 7 : 10;
      const slot = tree(slots, (count < 6 ? count - 2 : 3) << 6, 6), bits = (slot >> 1) - 1;
      rep0 = slot < 4 ? slot
        : slot < 14 ? ((2 | (slot & 1)) << bits) + backwards(far, ((2 | (slot & 1)) << bits) - slot - 1, bits)
        : ((2 | (slot & 1)) << bits) + (plain(bits - 4) << 4) + backwards(low, 0, 4);
    }
    if (rep0 >= at || at + count > out.length) throw new Error('a packed module is broken');
    for (; count > 0; --count, ++at) out[at] = out[at - rep0 - 1]!;
  }
  return out;
}
