// A matrix of the document: a grid that is changed cell by cell, or, where rows are long, their
// largest numbers.
import {Component, createRef} from 'preact';

import type {Sum, Table} from '../answers';
import {cellPlace, selOf} from '../ids';
import {pin, show} from '../store';
import {drawIn} from './drawing';
import {beginEditing} from './editing';
import {type Compares, Grid, type GridOptions, hasSameForm, rowName} from './grid';
import {onPaste} from './pasting';

export interface TableProps {
  table: Table;
  title?: string;
  isInput?: boolean;
  prefix?: string;
  compares?: Compares;
}

const cellOf = (event: Event) => (event.target as HTMLElement).closest<HTMLTableCellElement>('td[data-cell]');

function move(grid: HTMLElement, row: number, column: number): boolean {
  const next = grid.querySelector<HTMLElement>(`td[data-row="${row}"][data-column="${column}"]`);
  next?.focus();
  return next !== null;
}

const kMoves: Record<string, [number, number]> = {
  ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
};

// A computed number's; an input's click is for typing.
function pinCell(cell: HTMLTableCellElement): boolean {
  const place = cellPlace(cell.dataset['cell'] ?? '');
  if (!place || cell.dataset['place'] !== undefined) return false;
  pin(selOf(place));
  return true;
}

function onClick(event: MouseEvent): void {
  const cell = cellOf(event);
  if (cell) pinCell(cell);
}

// Arrows move, typing edits an input's cell, Enter edits it or pins a computed one. Of an input every letter is typing, so that none
// of them is a command of the page: what is no number is said to be none.
function onKeyDown(event: KeyboardEvent): void {
  const cell = cellOf(event);
  if (!cell || event.ctrlKey || event.metaKey || event.altKey) return;
  const grid = event.currentTarget as HTMLElement;
  const row = Number(cell.dataset['row']), column = Number(cell.dataset['column']);
  const by = kMoves[event.key];
  let isDone = false;
  if (by) isDone = move(grid, row + by[0], column + by[1]);
  else if (event.key === 'Home') isDone = move(grid, row, 0);
  else if (event.key === 'Enter') isDone = beginEditing(cell) || pinCell(cell);
  else if (event.key === 'F2') isDone = beginEditing(cell);
  else if (/^\S$/u.test(event.key)) isDone = beginEditing(cell, event.key);
  if (!isDone && !by) return;
  event.preventDefault();
  event.stopPropagation();
}

// One stop for Tab per grid: the cell that was last focused. Focus shows where its number comes
// from.
function onFocusIn(event: FocusEvent): void {
  const cell = cellOf(event);
  if (!cell || cell !== event.target) return;
  for (const other of (event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>('td[tabindex="0"]'))
    other.tabIndex = -1;
  cell.tabIndex = 0;
  const place = cellPlace(cell.dataset['cell'] ?? '');
  if (place) show({sel: selOf(place)});
}

function onDblClick(event: MouseEvent): void {
  const cell = cellOf(event);
  if (cell) beginEditing(cell);
}

const nameOf = ({table, title}: TableProps) =>
  title ?? [table.name || table.tap, table.leading].filter(Boolean).join(', ');

const gridOptions = (props: TableProps): GridOptions => ({
  name: nameOf(props), hasCaption: Boolean(props.table.name || props.table.leading || props.title),
  isInput: props.isInput ?? false, prefix: props.prefix ?? '', compares: props.compares ?? 'ghost',
});

class GridView extends Component<TableProps> {
  private readonly place = createRef<HTMLDivElement>();
  private grid: Grid | undefined;

  override componentDidMount(): void { this.draw(this.props); }
  override componentWillUnmount(): void { this.grid?.forget(); }

  override shouldComponentUpdate(next: TableProps): boolean {
    const {grid} = this;
    if (grid && hasSameForm(next.table, this.props.table) && next.isInput === this.props.isInput)
      drawIn(grid.root, this, () => grid.update(next.table, gridOptions(next)));
    else
      this.draw(next);
    return false;
  }

  private draw(props: TableProps): void {
    this.grid?.forget();
    this.grid = new Grid(props.table, gridOptions(props));
    const {root} = this.grid;
    root.addEventListener('keydown', onKeyDown);
    root.addEventListener('focusin', onFocusIn);
    root.addEventListener('click', onClick);
    root.addEventListener('dblclick', onDblClick);
    root.addEventListener('paste', onPaste);
    this.place.current!.replaceChildren(root);
  }

  override render() { return <div class="scroll" ref={this.place} />; }
}

export function TableView(props: TableProps) {
  const {table} = props;
  if (table.long_rows.length > 0) return <LongRows table={table} name={nameOf(props)} />;
  return table.rows.length === 0 ? null : <GridView {...props} />;
}

function SumCell({sum}: {sum: Sum}) {
  return (
    <td class="sum" data-testid={sum.id} data-exact={sum.exact}>
      {sum.text}{' '}
      {!sum.empty && (
        <span data-testid={`${sum.id}-ok`} class={sum.ok ? 'ok' : 'bad'}
          aria-label={sum.ok ? 'adds to 1' : 'does not add to 1'} role="img">{sum.ok ? '✓' : '✗'}</span>)}
    </td>
  );
}

function LongRows({table, name}: {table: Table; name: string}) {
  return (
    <>
      {table.long_rows.map((row, n) => (
        <div class="scroll" key={n}>
          <table aria-label={`${name}, ${rowName(table, n)}`}>
            <caption>{[name, `row ${rowName(table, n)}`].filter(Boolean).join(', ')}</caption>
            <thead><tr><th scope="col">value</th><th scope="col">key</th><th scope="col">token</th><th scope="col">q·k</th></tr></thead>
            <tbody>
              {row.top.map(({key, label, score, cell}) => (
                <tr key={key}>
                  <td data-testid={cell.id} data-exact={cell.exact}>{cell.text}</td><td>{key}</td>
                  <td class="note">{label}</td><td>{score}</td>
                </tr>))}
              {row.other_count > 0 && (
                <tr><td>{row.others.text}</td><td /><td class="note">others ({row.other_count})</td><td /></tr>)}
              {table.sums[n] && <tr><SumCell sum={table.sums[n]!} /><td class="note">Σ</td><td /><td /></tr>}
            </tbody>
          </table>
        </div>
      ))}
    </>
  );
}
