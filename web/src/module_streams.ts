// A WebAssembly module put together from streams of its parts: all instructions, then all numbers of
// variables, all constants and so on, as tools/pack.mjs took them apart. Kinds by themselves pack a
// tenth smaller than one beside the other. In each function the instructions say which stream the
// next part comes from; sizes of functions are counted anew.
//
//   u32 lengths of: what stands before the code section, what stands behind it, and the streams in
//   this order: locals instructions variables constants alignments offsets others; then all these

// Natural alignments of loads and stores, 0x28 to 0x3e: streams hold what differs.
const kAlignments = '23230011001122232301012';

class Stream {
  private at = 0;
  constructor(private readonly bytes: Uint8Array) {}
  next(): number {
    if (this.at >= this.bytes.length) throw new Error('a packed module is broken');
    return this.bytes[this.at++]!;
  }
}

export function joined(parts: Uint8Array): Uint8Array<ArrayBuffer> {
  const kCount = 9, lengths = new DataView(parts.buffer, parts.byteOffset);
  let from = 4 * kCount;
  const [before, behind, ...streams] = Array.from({length: kCount}, (_, n) => {
    const part = parts.subarray(from, from += lengths.getUint32(4 * n, true));
    return part;
  });
  const [locals, instructions, variables, constants, alignments, offsets, others] = streams.map((part) => new Stream(part));
  // No module is larger than its parts and a size for each function.
  const out = new Uint8Array(2 * parts.length + 16), code = new Uint8Array(2 * parts.length);
  let to = 0, end = 0;

  const copy = (stream: Stream, count: number) => { while (count-- > 0) code[to++] = stream.next(); };
  const leb = (stream: Stream): number => {  // copied, and what it says
    let value = 0, shift = 0, byte;
    do {
      byte = code[to++] = stream.next();
      value |= (byte & 127) << shift;
      shift += 7;
    } while (byte > 127);
    return value >>> 0;
  };
  const write = (value: number) => {
    for (; value > 127; value >>>= 7) out[end++] = value & 127 | 128;
    out[end++] = value;
  };

  const instruction = (): number => {
    const op = code[to++] = instructions!.next();
    if (op >= 2 && op <= 4) copy(instructions!, 1);
    else if (op === 0x0c || op === 0x0d || op === 0x10 || op === 0xd2) leb(instructions!);
    else if (op === 0x0e) for (let n = leb(others!) + 1; n > 0; --n) leb(others!);
    else if (op === 0x11) leb(others!), leb(others!);
    else if (op >= 0x20 && op <= 0x22) leb(variables!);
    else if (op >= 0x28 && op <= 0x3e) {
      code[to++] = alignments!.next() ^ Number(kAlignments[op - 0x28]);
      leb(offsets!);
    } else if (op === 0x41) leb(constants!);
    else if (op === 0x23 || op === 0x24 || op === 0x42) leb(others!);
    else if (op === 0x3f || op === 0x40) copy(others!, 1);
    else if (op === 0x43) copy(others!, 4);
    else if (op === 0x44) copy(others!, 8);
    else if (op === 0xfc) {
      const kind = code[to++] = instructions!.next();
      copy(others!, kind === 10 ? 2 : kind === 11 ? 1 : 0);
    }
    return op;
  };

  out.set(before!, 0);
  end = before!.length;
  // The code section by itself first, as its size stands before it.
  const sized: Uint8Array[] = [];
  let size = 0;
  const functions = new DataView(behind!.buffer, behind!.byteOffset).getUint32(0, true);
  for (let n = 0; n < functions; ++n) {
    const start = to;
    for (let groups = leb(locals!); groups > 0; --groups) {
      leb(locals!);
      copy(locals!, 1);
    }
    for (let depth = 1; depth > 0;) {
      const op = instruction();
      if (op >= 2 && op <= 4) ++depth;
      else if (op === 0x0b) --depth;
    }
    sized.push(code.subarray(start, to));
  }
  const kLengths = (value: number): number => (value < 128 ? 1 : 1 + kLengths(value >>> 7));
  for (const {length} of sized) size += kLengths(length) + length;
  out[end++] = 10;
  write(size + kLengths(functions));
  write(functions);
  for (const body of sized) {
    write(body.length);
    out.set(body, end);
    end += body.length;
  }
  out.set(behind!.subarray(4), end);
  return out.slice(0, end + behind!.length - 4);
}
