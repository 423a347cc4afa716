// One tensor of a trace as a .npy file: the bytes of `glasshead trace CASE --steps TAP -o FILE.npy`.
// The doubles are those of the trace's JSON, which reads back the same; here they are only laid out.
// Format: numpy/lib/format.py, version 1.0.
import type {Table, View} from './answers';

const kAlignment = 64;  // of the data

type Nested = number | string | null | Nested[];
const kWords: Record<string, number> = {nan: NaN, inf: Infinity, '-inf': -Infinity};

// Row by row. null: a score that is hidden.
function numbersOf(value: Nested): number[] {
  if (Array.isArray(value)) return value.flatMap(numbersOf);
  return [value === null ? -Infinity : typeof value === 'string' ? kWords[value] ?? NaN : value];
}

const leafOf = (tap: string) => tap.slice(tap.lastIndexOf('.') + 1);

// A row's maximum is one number, shown as a column of them.
const shapeOf = ({tap, shape}: Table) => (/^(?:row_max|lse)$/.test(leafOf(tap)) ? shape.slice(0, -1) : shape);

// The tensors that a trace's JSON holds as the command writes them: not the inputs of a case that
// runs step by step, which are there as given, nor a softmax's own sum, to which sinks are added.
export function storable(view: View): Table[] {
  const tables = new Map(view.document.sections.flatMap((section) => section.tables.map((table) => [table.tap, table])));
  const runs = [...tables.keys()].some((tap) => tap.startsWith('step.'));
  return [...tables.values()].filter(({tap}) =>
    leafOf(tap) !== 'row_sum' && !(runs && /^(?:X|ids|\w_earlier)$/.test(leafOf(tap))));
}

function headerOf(shape: readonly number[]): Uint8Array {
  const sizes = shape.length === 1 ? `${shape[0]},` : shape.join(', ');
  const text = `{'descr': '<f8', 'fortran_order': False, 'shape': (${sizes}), }`;
  const front = 10, rest = (front + text.length + 1) % kAlignment;
  const padded = `${text}${' '.repeat((kAlignment - rest) % kAlignment)}\n`;
  const bytes = new Uint8Array(front + padded.length);
  bytes.set(new TextEncoder().encode(`?NUMPY\x01\x00??${padded}`));
  bytes[0] = 0x93;
  new DataView(bytes.buffer).setUint16(8, padded.length, true);
  return bytes;
}

// Undefined: the trace holds other numbers than the table says.
export function npyOf(json: string, table: Table): Uint8Array | undefined {
  const trace = JSON.parse(json) as Record<string, Nested> & {inputs: Record<string, Nested>};
  const value = trace.inputs[table.tap] ?? trace[table.tap];
  const numbers = value === undefined ? [] : numbersOf(value), shape = shapeOf(table);
  if (numbers.length !== shape.reduce((count, size) => count * size, 1)) return undefined;
  const header = headerOf(shape), bytes = new Uint8Array(header.length + 8 * numbers.length);
  bytes.set(header);
  const data = new DataView(bytes.buffer, header.length);
  numbers.forEach((number, n) => data.setFloat64(8 * n, number, true));
  return bytes;
}
