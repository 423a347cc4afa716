// pack.mjs MODULE…: writes MODULE.lzma beside each, which the page takes apart again: web/src/lzma.ts unpacks,
// web/src/module_streams.ts says in which parts a module is packed, and why.
import {spawnSync} from 'node:child_process';
import {readFileSync, writeFileSync} from 'node:fs';
import {fileURLToPath} from 'node:url';

// With a header that says how many bytes come out, which xz leaves open.
export function packed(bytes) {
  const xz = spawnSync('xz', ['--format=lzma', '--lzma1=preset=9e,lc=3,lp=0,pb=0', '--stdout'], {input: bytes, maxBuffer: 1 << 30});
  if (xz.error || xz.status !== 0) throw new Error(`pack.mjs: xz: ${xz.error ?? xz.stderr}`);
  xz.stdout.writeUInt32LE(bytes.length, 5);
  xz.stdout.writeUInt32LE(0, 9);
  return xz.stdout;
}

// Natural alignments of loads and stores, 0x28 to 0x3e.
const kAlignments = '23230011001122232301012';

// The parts of a module, for module_streams.ts to join.
export function split(module) {
  const locals = [], instructions = [], variables = [], constants = [], alignments = [], offsets = [], others = [];
  let at = 8;
  const number = () => {  // passed over, and what it says
    for (let value = 0, shift = 0; ; shift += 7) {
      const byte = module[at++];
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value;
    }
  };
  const copy = (to, count) => { while (count-- > 0) to.push(module[at++]); };
  const numberTo = (to) => {
    const from = at, value = number();
    for (let n = from; n < at; ++n) to.push(module[n]);
    return value;
  };
  const instruction = () => {
    const op = module[at];
    copy(instructions, 1);
    if (op >= 0x02 && op <= 0x04) copy(instructions, 1);                                  // block, loop, if
    else if (op === 0x0c || op === 0x0d || op === 0x10 || op === 0xd2) numberTo(instructions);  // br, br_if, call, ref.func
    else if (op === 0x0e) for (let n = numberTo(others) + 1; n > 0; --n) numberTo(others);  // br_table
    else if (op === 0x11) numberTo(others), numberTo(others);                             // call_indirect
    else if (op >= 0x20 && op <= 0x22) numberTo(variables);                               // local.
    else if (op >= 0x28 && op <= 0x3e) {                                                  // loads, stores
      alignments.push(module[at++] ^ Number(kAlignments[op - 0x28]));
      numberTo(offsets);
    } else if (op === 0x41) numberTo(constants);                                          // i32.const
    else if (op === 0x23 || op === 0x24 || op === 0x42) numberTo(others);                 // global., i64.const
    else if (op === 0x3f || op === 0x40) copy(others, 1);                                 // memory.size, memory.grow
    else if (op === 0x43) copy(others, 4);                                                // f32.const
    else if (op === 0x44) copy(others, 8);                                                // f64.const
    else if (op === 0xfc) {
      const kind = module[at];
      if (kind > 7 && kind !== 10 && kind !== 11) throw new Error(`pack.mjs: instruction 0xfc ${kind} is not known`);
      copy(instructions, 1);
      copy(others, kind === 10 ? 2 : kind === 11 ? 1 : 0);                                // memory.copy, memory.fill
    } else if (op === 0x1c || op === 0x25 || op === 0x26 || op === 0xd0 || op > 0xd2) {
      throw new Error(`pack.mjs: instruction ${op} is not known`);
    }
    return op;
  };

  let before, functions, end;
  while (before === undefined) {
    const section = at, kind = module[at++], size = number();
    if (kind !== 10) {
      at += size;
      continue;
    }
    [before, end] = [module.subarray(0, section), at + size];
  }
  functions = number();
  for (let n = 0; n < functions; ++n) {
    const stop = number() + at;
    for (let groups = numberTo(locals); groups > 0; --groups) {
      numberTo(locals);
      copy(locals, 1);
    }
    while (at < stop) instruction();
  }
  if (at !== end) throw new Error('pack.mjs: a function goes on beyond its end');
  const count = Buffer.alloc(4);
  count.writeUInt32LE(functions);
  const parts = [before, Buffer.concat([count, module.subarray(end)]),
                 ...[locals, instructions, variables, constants, alignments, offsets, others].map((list) => Buffer.from(list))];
  const lengths = Buffer.alloc(4 * parts.length);
  parts.forEach((part, n) => lengths.writeUInt32LE(part.length, 4 * n));
  return Buffer.concat([lengths, ...parts]);
}

// As web/src/text_bytes.ts reads it: four bytes as five characters, filled up with zeros.
export function asText(bytes) {
  const alphabet = Array.from({length: 94}, (_, n) => String.fromCharCode(33 + n)).filter((c) => !`"&'<>\\`.includes(c));
  const whole = Buffer.concat([bytes, Buffer.alloc((4 - bytes.length % 4) % 4)]);
  const fives = [];
  for (let from = 0; from < whole.length; from += 4) {
    let four = whole.readUInt32BE(from), five = '';
    for (let n = 0; n < 5; ++n, four = Math.floor(four / 85)) five = alphabet[four % 85] + five;
    fives.push(five);
  }
  return fives.join('');
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  for (const file of process.argv.slice(2)) writeFileSync(`${file}.lzma`, packed(split(readFileSync(file))));
