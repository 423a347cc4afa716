// Cells that the chosen or pinned number came from, and those it feeds, are outlined; attributes of
// the page's own, which drawing leaves alone.
import {idOfSel} from '../ids';
import {origin, outcome, shown, traced} from '../store';
import {cellsById} from './grid';

// What a screen reader adds to an outlined cell: ids of the words (why.tsx).
export const kFromWords = 'is-from', kFeedsWords = 'is-fed';

type Marks = Map<HTMLElement, Record<string, string>>;

let marked: Marks = new Map();

function mark(marks: Marks, sel: string | undefined, attributes: Record<string, string>): void {
  const cell = cellsById.get(sel ?? '');
  if (cell) marks.set(cell, {...marks.get(cell), ...attributes});
}

// An edit mostly leaves the outlines as they are.
function draw(marks: Marks): void {
  for (const [cell, attributes] of marked)
    for (const name of Object.keys(attributes)) if (marks.get(cell)?.[name] === undefined) cell.removeAttribute(name);
  for (const [cell, attributes] of marks)
    for (const name of Object.keys(attributes))
      if (marked.get(cell)?.[name] !== attributes[name]) cell.setAttribute(name, attributes[name]!);
  marked = marks;
}

// An effect of the selection and of what is shown.
export function outline(): void {
  const {sel, pin} = shown.value, now = origin.value, pinned = pin === undefined ? undefined : traced.value;
  void outcome.value;
  requestAnimationFrame(() => {
    const marks: Marks = new Map();
    for (const id of now?.feeds ?? []) mark(marks, id, {'data-feeds': '', 'aria-describedby': kFeedsWords});
    for (const id of now?.from ?? []) mark(marks, id, {'data-from': '', 'aria-describedby': kFromWords});
    mark(marks, idOfSel(sel ?? ''), {'data-selected': ''});
    mark(marks, idOfSel(pinned ?? ''), {'data-pinned': '', 'aria-selected': 'true'});
    draw(marks);
  });
}
