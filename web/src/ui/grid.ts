// One matrix as a grid of cells in the document, drawn once and then changed cell by cell: of some
// thousand cells an edit moves some hundred. Texts are the engine's.
import type {Cell, Sum, Table} from '../answers';
import {cellPlace, editPlace} from '../ids';

// What a cell's `was` is.
export type Compares = 'ghost' | 'exact' | 'right' | 'none';

export interface GridOptions {
  name: string;
  hasCaption: boolean;
  isInput: boolean;
  prefix: string;  // of the test ids: "wrong-" beside the right ones
  compares: Compares;
}

const kWords: Record<string, string> = {
  scores: 'score', scaled: 'scaled score', masked: 'masked score', weights: 'weight', out: 'output',
  q: 'query', k: 'key', v: 'value',
};
const kWas = {ghost: 'was', exact: 'exact', right: 'right', none: ''};

export const leafOf = (tap: string) => tap.slice(tap.lastIndexOf('.') + 1);
const isPair = (tap: string) => /^(?:scores|scaled|capped|biased|masked|exp|weights)$/.test(leafOf(tap));
const isKeySide = (tap: string) => /^[kv]$/.test(leafOf(tap));

export function rowName(table: Table, n: number): string {
  return table.rows_named[n] ?? String(table.row_index[n] ?? n);
}

// "weight", "query B", "key A"
export function placeWords(table: Table, n: number, j: number): string[] {
  const {tap, leading} = table;
  return [
    kWords[leafOf(tap)] ?? tap, ...(leading ? [leading] : []),
    `${isPair(tap) ? 'query' : isKeySide(tap) ? 'key' : 'row'} ${rowName(table, n)}`,
    `${isPair(tap) ? 'key' : 'column'} ${table.columns_named[j] ?? j}`,
  ];
}

function make<K extends keyof HTMLElementTagNameMap>(
    name: K, attributes: Record<string, string> = {}, text = ''): HTMLElementTagNameMap[K] {
  const element = document.createElement(name);
  for (const key of Object.keys(attributes)) element.setAttribute(key, attributes[key]!);
  if (text) element.textContent = text;
  return element;
}

function set(element: Element, name: string, value: string | undefined): void {
  if (value === undefined) element.removeAttribute(name);
  else element.setAttribute(name, value);
}

interface Drawn {
  td: HTMLTableCellElement;
  place: string;  // "weight, query B, key A"
  number: Text;
  was: {text: Text; arrow: Text} | undefined;
  cell: Cell;
}

interface DrawnSum {
  td: HTMLTableCellElement;
  number: Text;
  ok: HTMLElement | undefined;
  sum: Sum;
}

// Of all grids on the page, by test id: for outlines, and for what is typed.
export const cellsById = new Map<string, HTMLTableCellElement>();

// Whether a grid drawn for one table can be changed into one for the other.
export function hasSameForm(a: Table, b: Table): boolean {
  const areAlike = (x: readonly string[], y: readonly string[]) =>
    x === y || (x.length === y.length && x.every((text, n) => text === y[n]));
  return a.tap === b.tap && a.head === b.head && a.rows.length === b.rows.length &&
      a.rows.every((row, n) => row.length === b.rows[n]!.length) && a.sums.length === b.sums.length &&
      a.row_notes.length === b.row_notes.length && areAlike(a.rows_named, b.rows_named) &&
      areAlike(a.columns_named, b.columns_named);
}

export class Grid {
  readonly root: HTMLTableElement;
  private readonly drawn: Drawn[][] = [];
  private readonly sums: (DrawnSum | undefined)[] = [];
  private readonly notes: HTMLElement[] = [];

  constructor(private table: Table, private options: GridOptions) {
    this.root = make('table', {role: 'grid', 'aria-label': options.name});
    if (options.hasCaption) this.root.append(make('caption', {}, options.name));
    this.drawHead();
    const body = make('tbody');
    table.rows.forEach((_, n) => body.append(this.drawRow(n)));
    this.root.append(body);
  }

  // The same form of table (hasSameForm) with other numbers.
  update(table: Table, options: GridOptions): void {
    if (table === this.table && options.compares === this.options.compares) return;
    const isAll = options.compares !== this.options.compares;
    this.table = table;
    this.options = options;
    for (let n = 0; n < table.rows.length; ++n) {
      const row = table.rows[n]!, drawn = this.drawn[n]!;
      for (let j = 0; j < row.length; ++j)
        if (isAll || row[j] !== drawn[j]!.cell) this.drawCell(drawn[j]!, row[j]!, isAll);
      const sum = this.sums[n];
      if (sum) this.drawSum(sum, table.sums[n]!);
      if (this.notes[n] && this.notes[n]!.textContent !== table.row_notes[n])
        this.notes[n]!.textContent = table.row_notes[n] ?? '';
    }
  }

  forget(): void {
    for (const row of this.drawn)
      for (const {td} of row)
        if (cellsById.get(td.dataset['testid']!) === td) cellsById.delete(td.dataset['testid']!);
  }

  private get isNamed(): boolean { return this.table.rows_named.length > 0; }

  private drawHead(): void {
    const {columns_named: columns, sums} = this.table;
    if (columns.length === 0) return;
    const row = make('tr');
    if (this.isNamed) row.append(make('td', {class: 'corner'}));
    for (const label of columns) row.append(make('th', {scope: 'col'}, label));
    if (sums.length > 0) row.append(make('th', {scope: 'col'}, 'Σ'));
    const head = make('thead');
    head.append(row);
    this.root.append(head);
  }

  private drawRow(n: number): HTMLElement {
    const {table} = this, row = make('tr'), drawn: Drawn[] = [];
    if (this.isNamed) row.append(make('th', {scope: 'row'}, rowName(table, n)));
    table.rows[n]!.forEach((cell, j) => {
      drawn.push(this.newCell(cell, n, j));
      row.append(drawn[j]!.td);
    });
    this.drawn.push(drawn);
    const sum = table.sums[n];
    this.sums.push(sum && this.newSum(sum));
    if (sum) row.append(this.sums[n]!.td);
    const note = table.row_notes[n];
    if (note !== undefined) {
      this.notes[n] = make('td', {class: 'note'}, note);
      row.append(this.notes[n]!);
    }
    return row;
  }

  private newCell(cell: Cell, n: number, j: number): Drawn {
    const {table, options} = this, id = cell.id ?? '', place = cellPlace(id);
    const td = make('td', {
      role: 'gridcell', 'data-testid': options.prefix + id, 'data-cell': id, 'data-row': String(n),
      'data-column': String(j), 'aria-readonly': String(!options.isInput),
    });
    td.tabIndex = n === 0 && j === 0 ? 0 : -1;
    if (options.isInput && place) td.dataset['place'] = editPlace(place, table.shape.length);
    const number = document.createTextNode(''), holder = make('span', {class: 'number'});
    holder.append(number);
    td.append(holder);
    cellsById.set(options.prefix + id, td);
    const drawn: Drawn = {td, place: placeWords(table, n, j).join(', '), number, was: undefined, cell: {text: ''}};
    this.drawCell(drawn, cell, true);
    return drawn;
  }

  private drawCell(drawn: Drawn, cell: Cell, isAll: boolean): void {
    const {td, cell: old} = drawn, {options, table} = this;
    drawn.cell = cell;
    const hasWas = cell.was !== undefined && options.compares !== 'none';
    if (isAll || cell.text !== old.text) {
      drawn.number.data = cell.text;
      td.dataset['text'] = cell.text;
    }
    if (isAll || cell.exact !== old.exact) {
      set(td, 'data-exact', cell.exact);
      if (table.sums.length > 0) set(td, 'style', cell.exact === undefined ? undefined : `--w:${cell.exact}`);
    }
    if (isAll || cell.moved !== old.moved || cell.hidden !== old.hidden || cell.moved !== undefined) {
      set(td, 'data-moved', cell.moved === undefined ? undefined : String(cell.moved));
      set(td, 'title', cell.hidden !== undefined ? `hidden: ${cell.hidden}`
          : cell.moved ? `exact ${cell.exact}` : undefined);
    }
    if (isAll || cell.was !== old.was || cell.direction !== old.direction) this.drawWas(drawn, hasWas);
    const classes = [cell.hidden !== undefined && 'hidden', options.isInput && 'input', hasWas && 'moved',
                     table.sums.length > 0 && cell.hidden === undefined && 'heat'].filter(Boolean).join(' ');
    if (td.className !== classes) td.className = classes;
    td.setAttribute('aria-label', this.spoken(drawn));
  }

  // What a cell was is not shown of one that has not moved (style.css), and stays as it is there.
  private drawWas(drawn: Drawn, hasWas: boolean): void {
    if (!hasWas) return;
    if (!drawn.was) {
      const text = document.createTextNode(''), arrow = document.createTextNode('');
      const small = make('small', {class: 'was'}), hidden = make('span', {'aria-hidden': 'true'});
      hidden.append(arrow);
      small.append(text, hidden);
      drawn.td.append(' ', small);
      drawn.was = {text, arrow};
    }
    const {cell, was} = drawn, {compares} = this.options;
    was.text.data = `${kWas[compares]} ${cell.was}`;
    const arrow = compares === 'ghost' ? (cell.direction === 1 ? ' ▲' : ' ▼') : '';
    if (was.arrow.data !== arrow) was.arrow.data = arrow;
  }

  // "weight, query B, key A, 0.3302, was 0.1978"
  private spoken({place, cell}: Drawn): string {
    const {compares} = this.options;
    const now = cell.hidden !== undefined ? `hidden: ${cell.hidden}` : cell.text;
    return cell.was && compares !== 'none' ? `${place}, ${now}, ${kWas[compares]} ${cell.was}` : `${place}, ${now}`;
  }

  private newSum(sum: Sum): DrawnSum {
    const {prefix} = this.options;
    const td = make('td', {class: 'sum', 'data-testid': prefix + sum.id}), number = document.createTextNode('');
    td.append(number);
    const drawn: DrawnSum = {td, number, ok: undefined, sum: {id: '', text: '', exact: '', ok: false, empty: true}};
    this.drawSum(drawn, sum);
    return drawn;
  }

  private drawSum(drawn: DrawnSum, sum: Sum): void {
    const {td, sum: old} = drawn;
    drawn.sum = sum;
    if (sum.text !== old.text) drawn.number.data = `${sum.text} `;
    if (sum.exact !== old.exact) td.dataset['exact'] = sum.exact;
    if (sum.empty === old.empty && sum.ok === old.ok) return;
    drawn.ok?.remove();
    drawn.ok = undefined;
    if (sum.empty) return;
    drawn.ok = make('span', {
      'data-testid': `${this.options.prefix}${sum.id}-ok`, class: sum.ok ? 'ok' : 'bad', role: 'img',
      'aria-label': sum.ok ? 'adds to 1' : 'does not add to 1',
    }, sum.ok ? '✓' : '✗');
    td.append(drawn.ok);
  }
}
