// Cells that the selected number came from, and those it feeds, are outlined; attributes of the
// page's own, which drawing leaves alone.
import {idOfSel} from '../ids';
import {origin, outcome, shown} from '../store';
import {cellsById} from './grid';

let marked: [HTMLElement, string][] = [];

function mark(id: string, name: string): void {
  const cell = cellsById.get(id);
  if (!cell) return;
  cell.setAttribute(name, '');
  marked.push([cell, name]);
}

// An effect of the selection and of what is shown.
export function outline(): void {
  const {sel} = shown.value, now = origin.value;
  void outcome.value;
  requestAnimationFrame(() => {
    for (const [cell, name] of marked) cell.removeAttribute(name);
    marked = [];
    for (const id of now?.feeds ?? []) mark(id, 'data-feeds');
    for (const id of now?.from ?? []) mark(id, 'data-from');
    const id = sel === undefined ? undefined : idOfSel(sel);
    if (id) mark(id, 'data-selected');
  });
}
