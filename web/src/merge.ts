// A view from the one held and what the engine says changed (bindings/wasm/view_delta.h). Cells,
// tables and panels that did not change stay the same objects, which is how drawing knows.
import type {Cell, Section, Table, View} from './answers';

type NewCell = readonly [row: number, column: number, cell: Cell];
type TableChange = null | {whole: Table} | Pick<Table, 'sums' | 'row_notes'> & {cells: NewCell[]};
type SectionChange = Omit<Section, 'tables'> & {tables: TableChange[]};

export type Change = Partial<Omit<View, 'document'>> & Pick<View, 'serial' | 'refused' | 'scale'> & {
  since: number;
  document: Omit<View['document'], 'sections'> & {sections: SectionChange[]};
};

export const isChange = (answer: View | Change): answer is Change => 'since' in answer;

function withCells(table: Table, cells: readonly NewCell[]): Cell[][] {
  const rows = [...table.rows], copied = new Set<number>();
  for (const [i, j, cell] of cells) {
    if (!copied.has(i)) rows[i] = [...rows[i]!];
    copied.add(i);
    const id = rows[i]![j]!.id;
    rows[i]![j] = id === undefined ? cell : {...cell, id};
  }
  return rows;
}

function mergedTable(table: Table, change: TableChange): Table {
  if (change === null) return table;
  if ('whole' in change) return change.whole;
  const {cells, sums, row_notes} = change;
  return {...table, rows: withCells(table, cells), sums, row_notes};
}

export function merged(held: View, change: Change): View {
  const {since: _, document, ...rest} = change;
  const sections = document.sections.map((section, n) => ({
    ...section,
    tables: held.document.sections[n]!.tables.map((table, t) => mergedTable(table, section.tables[t]!)),
  }));
  const {moved: _moved, why: _why, by_hand: _hand, ...kept} = held;
  return {...kept, ...rest, document: {...document, sections}};
}
