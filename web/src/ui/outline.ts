// Cells that the chosen or pinned number came from, and those it feeds, are outlined; attributes of
// the page's own, which drawing leaves alone.
import {idOfSel} from '../ids';
import {origin, outcome, shown, traced} from '../store';
import {cellsById} from './grid';

// What a screen reader adds to an outlined cell: ids of the words (why.tsx).
export const kFromWords = 'is-from', kFeedsWords = 'is-fed';

let marked: [HTMLElement, string][] = [];

function mark(sel: string | undefined, attributes: Record<string, string>): void {
  const cell = cellsById.get(sel ?? '');
  if (!cell) return;
  for (const name of Object.keys(attributes)) {
    cell.setAttribute(name, attributes[name]!);
    marked.push([cell, name]);
  }
}

// An effect of the selection and of what is shown.
export function outline(): void {
  const {sel, pin} = shown.value, now = origin.value, pinned = pin === undefined ? undefined : traced.value;
  void outcome.value;
  requestAnimationFrame(() => {
    for (const [cell, name] of marked) cell.removeAttribute(name);
    marked = [];
    for (const id of now?.feeds ?? []) mark(id, {'data-feeds': '', 'aria-describedby': kFeedsWords});
    for (const id of now?.from ?? []) mark(id, {'data-from': '', 'aria-describedby': kFromWords});
    mark(idOfSel(sel ?? ''), {'data-selected': ''});
    mark(idOfSel(pinned ?? ''), {'data-pinned': '', 'aria-selected': 'true'});
  });
}
