// One matrix as a grid: arrows move, typing edits an input's cell, focus shows where a number comes
// from. Texts are the engine's.
import type {Cell, Table} from '../answers';
import {cellPlace, editPlace, selOf} from '../ids';
import {show} from '../store';
import {beginEditing, cancelEditing, commitEditing, editing, refused, stepEditing} from './editing';

export interface TableProps {
  table: Table;
  title?: string;
  isInput?: boolean;
  prefix?: string;            // of the test ids: "wrong-" beside the right ones
  compares?: 'ghost' | 'exact' | 'right' | 'none';  // what a cell's `was` is
}

const kWords: Record<string, string> = {
  scores: 'score', scaled: 'scaled score', masked: 'masked score', weights: 'weight', out: 'output',
  q: 'query', k: 'key', v: 'value',
};
const leaf = (tap: string) => tap.slice(tap.lastIndexOf('.') + 1);
const isPair = (tap: string) => /^(?:scores|scaled|capped|biased|masked|exp|weights)$/.test(leaf(tap));
const isKeySide = (tap: string) => /^[kv]$/.test(leaf(tap));

function rowName(table: Table, n: number): string {
  return table.rows_named[n] ?? String(table.row_index[n] ?? n);
}

// "weight, query B, key A, 0.3302, was 0.1978"
function spoken(props: TableProps, n: number, j: number, cell: Cell): string {
  const {table, compares} = props;
  const words = [kWords[leaf(table.tap)] ?? table.tap];
  if (table.leading) words.push(table.leading);
  const row = isPair(table.tap) ? 'query' : isKeySide(table.tap) ? 'key' : 'row';
  words.push(`${row} ${rowName(table, n)}`);
  words.push(`${isPair(table.tap) ? 'key' : 'column'} ${table.columns_named[j] ?? j}`);
  words.push(cell.hidden !== undefined ? `hidden: ${cell.hidden}` : cell.text);
  if (cell.was && compares !== 'none') words.push(`${kWas[compares ?? 'ghost']} ${cell.was}`);
  return words.join(', ');
}

const kWas = {ghost: 'was', exact: 'exact', right: 'right', none: ''};
const arrow = (cell: Cell) => (cell.direction === 1 ? '▲' : '▼');

function Was({cell, compares}: {cell: Cell; compares: TableProps['compares']}) {
  if (!cell.was || compares === 'none') return null;
  return (
    <small class="was">{kWas[compares ?? 'ghost']} {cell.was}
      {(compares ?? 'ghost') === 'ghost' && <span aria-hidden="true"> {arrow(cell)}</span>}</small>
  );
}

function Typed({id, place}: {id: string; place: string}) {
  const now = editing.value!;
  const onKeyDown = (event: KeyboardEvent) => {
    const by = event.shiftKey ? '1' : event.altKey ? '0.01' : '0.1';
    const cell = (event.currentTarget as HTMLElement).closest('td');
    event.stopPropagation();
    if (event.key === 'Enter') commitEditing();
    else if (event.key === 'Escape') cancelEditing();
    else if (event.key === 'ArrowUp') stepEditing(by);
    else if (event.key === 'ArrowDown') stepEditing(`-${by}`);
    else return;
    event.preventDefault();
    if (editing.peek() === null) requestAnimationFrame(() => cell?.focus());
  };
  return (
    <input class="typed" data-testid={`edit-${place}`} aria-label={`new value of ${place}`} inputMode="decimal"
      value={now.text} size={6} autocomplete="off"
      ref={(input) => {
        if (input && document.activeElement !== input) {
          input.focus();
          if (now.text === now.was) input.select();
        }
      }}
      onInput={(event) => {
        if (editing.peek()?.id === id) editing.value = {...editing.peek()!, text: event.currentTarget.value};
      }}
      onBlur={() => { if (editing.peek()?.id === id) commitEditing(); }}
      onKeyDown={onKeyDown} />
  );
}

function CellView({props, n, j}: {props: TableProps; n: number; j: number}) {
  const {table, isInput, prefix = '', compares} = props;
  const cell = table.rows[n]![j]!;
  const id = cell.id ?? '';
  const place = cellPlace(id);
  const isEditing = isInput && editing.value?.id === id;
  const trouble = refused.value?.id === id && isInput ? refused.value.why : undefined;
  const classes = [
    cell.hidden !== undefined && 'hidden', isInput && 'input', cell.was && compares !== 'none' && 'moved',
    table.sums.length > 0 && cell.hidden === undefined && 'heat', trouble && 'refused',
  ].filter(Boolean).join(' ');
  return (
    <td role="gridcell" class={classes} tabIndex={n === 0 && j === 0 ? 0 : -1}
      data-testid={prefix + id} data-cell={id} data-row={n} data-column={j} data-exact={cell.exact}
      data-moved={cell.moved} data-place={isInput && place ? editPlace(place, table.shape.length) : undefined}
      data-text={cell.text}
      style={cell.exact !== undefined && table.sums.length > 0 ? `--w:${cell.exact}` : undefined}
      title={cell.hidden !== undefined ? `hidden: ${cell.hidden}` : cell.moved ? `exact ${cell.exact}` : undefined}
      aria-label={trouble ? `${spoken(props, n, j, cell)}. ${trouble}` : spoken(props, n, j, cell)}
      aria-invalid={trouble ? 'true' : undefined} aria-readonly={isInput ? 'false' : 'true'}>
      {isEditing && place
        ? <Typed id={id} place={editPlace(place, table.shape.length)} />
        : <><span class="number">{cell.text}</span> <Was cell={cell} compares={compares} /></>}
      {trouble && <small class="why-refused">{trouble}</small>}
    </td>
  );
}

function move(grid: HTMLElement, row: number, column: number): boolean {
  const next = grid.querySelector<HTMLElement>(`td[data-row="${row}"][data-column="${column}"]`);
  if (!next) return false;
  next.focus();
  return true;
}

const kMoves: Record<string, [number, number]> = {
  ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
};

function begin(cell: HTMLElement, typed?: string): boolean {
  const {cell: id, place, text} = cell.dataset;
  if (!id || !place || text === undefined) return false;
  beginEditing(id, place, text, typed);
  return true;
}

function onKeyDown(event: KeyboardEvent): void {
  const cell = (event.target as HTMLElement).closest<HTMLElement>('td[data-cell]');
  if (!cell || event.ctrlKey || event.metaKey) return;
  const grid = event.currentTarget as HTMLElement;
  const row = Number(cell.dataset['row']), column = Number(cell.dataset['column']);
  const by = kMoves[event.key];
  let isDone = false;
  if (by) isDone = move(grid, row + by[0], column + by[1]);
  else if (event.key === 'Home') isDone = move(grid, row, 0);
  else if (event.key === 'Enter' || event.key === 'F2') isDone = begin(cell);
  else if (/^[-.\d]$/.test(event.key)) isDone = begin(cell, event.key);
  if (!isDone && !by) return;
  event.preventDefault();
  event.stopPropagation();
}

// One stop for Tab per grid: the cell that was last focused.
function onFocusIn(event: FocusEvent): void {
  const cell = (event.target as HTMLElement).closest<HTMLElement>('td[data-cell]');
  if (!cell || cell !== event.target) return;
  for (const other of (event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>('td[tabindex="0"]'))
    other.tabIndex = -1;
  cell.tabIndex = 0;
  const place = cellPlace(cell.dataset['cell'] ?? '');
  if (place) show({sel: selOf(place)});
}

function onDblClick(event: MouseEvent): void {
  const cell = (event.target as HTMLElement).closest<HTMLElement>('td[data-place]');
  if (cell) begin(cell);
}

function Sums({table, n, prefix}: {table: Table; n: number; prefix: string}) {
  const sum = table.sums[n];
  if (!sum) return null;
  return (
    <td class="sum" data-testid={prefix + sum.id} data-exact={sum.exact}>
      {sum.text}{' '}
      {!sum.empty && (
        <span data-testid={`${prefix}${sum.id}-ok`} class={sum.ok ? 'ok' : 'bad'}
          aria-label={sum.ok ? 'adds to 1' : 'does not add to 1'} role="img">{sum.ok ? '✓' : '✗'}</span>)}
    </td>
  );
}

export function TableView(props: TableProps) {
  const {table, title, prefix = ''} = props;
  const name = title ?? [table.name || table.tap, table.leading].filter(Boolean).join(', ');
  if (table.long_rows.length > 0) return <LongRows table={table} name={name} />;
  if (table.rows.length === 0) return null;
  const hasNames = table.rows_named.length > 0;
  return (
    <div class="scroll">
      <table role="grid" aria-label={name} onKeyDown={onKeyDown} onFocusIn={onFocusIn} onDblClick={onDblClick}>
        {(table.name || table.leading || title) && <caption>{name}</caption>}
        {table.columns_named.length > 0 && (
          <thead><tr>
            {hasNames && <td class="corner" />}
            {table.columns_named.map((label, j) => <th scope="col" key={j}>{label}</th>)}
            {table.sums.length > 0 && <th scope="col">Σ</th>}
          </tr></thead>
        )}
        <tbody>
          {table.rows.map((row, n) => (
            <tr key={n}>
              {hasNames && <th scope="row">{rowName(table, n)}</th>}
              {row.map((_, j) => <CellView key={j} props={props} n={n} j={j} />)}
              <Sums table={table} n={n} prefix={prefix} />
              {table.row_notes[n] && <td class="note">{table.row_notes[n]}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
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
              {table.sums[n] && <tr><Sums table={table} n={n} prefix="" /><td class="note">Σ</td><td /><td /></tr>}
            </tbody>
          </table>
        </div>
      ))}
    </>
  );
}
