// Test ids and places: what WORKBENCH calls a contract. Ids of cells come from the engine.

// "cell-weights-h1-2-0" -> weights, head 1, row 2, column 0.
export interface CellPlace {
  tap: string;
  head: number;
  row: number;
  column: number;
}

export function cellPlace(id: string): CellPlace | undefined {
  const found = /^cell-(.*?)(?:-h(\d+))?-(\d+)-(\d+)$/.exec(id);
  if (!found) return undefined;
  return {
    tap: found[1]!, head: found[2] === undefined ? -1 : Number(found[2]), row: Number(found[3]),
    column: Number(found[4]),
  };
}

// "weights.h1.2.0": a cell in the address.
export function selOf({tap, head, row, column}: CellPlace): string {
  return `${tap}${head < 0 ? '' : `.h${head}`}.${row}.${column}`;
}
export function placeOfSel(sel: string): CellPlace | undefined {
  const found = /^(.*?)(?:\.h(\d+))?\.(\d+)\.(\d+)$/.exec(sel);
  if (!found) return undefined;
  return {
    tap: found[1]!, head: found[2] === undefined ? -1 : Number(found[2]), row: Number(found[3]),
    column: Number(found[4]),
  };
}
export function idOfSel(sel: string): string | undefined {
  const found = /^(.*?)(?:\.(h\d+))?\.(\d+)\.(\d+)$/.exec(sel);
  if (!found) return undefined;
  return `cell-${found[1]}-${found[2] ? `${found[2]}-` : ''}${found[3]}-${found[4]}`;
}

// An input's place among the edits: "X.1.0", "k.0.1.0" with heads.
export function editPlace({tap, head, row, column}: CellPlace, rank: number): string {
  const at = rank > 2 ? [head, row, column] : rank > 1 ? [row, column] : [column];
  return [tap, ...at].join('.');
}

export const maskId = (row: number, column: number) => `mask-${row}-${column}`;
