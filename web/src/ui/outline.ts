// Cells that the chosen or pinned number came from, and those it feeds, are outlined; attributes of
// the page's own, which drawing leaves alone.
import {idOfSel} from '../ids';
import {origin, outcome, shown, traced} from '../store';
import {drawLater} from './drawing';
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

function drawNow(): void {
  const {sel, pin} = shown.peek(), now = origin.peek(), marks: Marks = new Map();
  for (const id of now?.feeds ?? []) mark(marks, id, {'data-feeds': '', 'aria-describedby': kFeedsWords});
  for (const id of now?.from ?? []) mark(marks, id, {'data-from': '', 'aria-describedby': kFromWords});
  mark(marks, idOfSel(sel ?? ''), {'data-selected': ''});
  if (pin !== undefined) mark(marks, idOfSel(traced.peek() ?? ''), {'data-pinned': '', 'aria-selected': 'true'});
  draw(marks);
}

let outlined: unknown;  // what was chosen when outlines were last drawn

// An effect of the selection, which is outlined in the next frame, and of what is shown: an edit mostly
// leaves the outlines as they are, and does not wait for the engine to say so.
export function outline(): void {
  const chosen = shown.value;
  void outcome.value;
  if (chosen === outlined) drawLater(outline, drawNow);
  else requestAnimationFrame(drawNow);
  outlined = chosen;
}
