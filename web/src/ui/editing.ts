// The one cell that is being typed into.
import {isNumberText} from '../address';
import {setNumber, stepped} from '../store';

interface Typing {
  cell: HTMLTableCellElement;
  input: HTMLInputElement;
  place: string;  // among the edits
  was: string;    // what Esc brings back
}

let typing: Typing | undefined;

// Says beside the cell why what was typed was not taken; drawing the cell anew ends it.
function refuse(cell: HTMLTableCellElement, why: string | undefined): void {
  cell.querySelector('.why-refused')?.remove();
  if (why === undefined) {
    cell.removeAttribute('aria-invalid');
    return;
  }
  cell.setAttribute('aria-invalid', 'true');
  const said = document.createElement('small');
  said.className = 'why-refused';
  said.setAttribute('role', 'alert');
  said.textContent = why;
  cell.append(said);
}

// Text that isn't a number keeps the old value, marks the cell and says why.
function apply({cell, place, was}: Typing, text: string): boolean {
  refuse(cell, undefined);
  if (text === was) return true;
  const why = text === '' ? 'nothing was typed' : setNumber(place, text);
  if (why !== undefined) refuse(cell, `${why}; the old value ${was} stays`);
  return why === undefined;
}

function close({cell, input}: Typing): void {
  typing = undefined;
  input.remove();
  cell.removeAttribute('data-typing');
}

function commit(now: Typing): void {
  close(now);
  apply(now, now.input.value.trim());
}

// The focus went elsewhere, or another cell is typed into.
function leave(): void {
  if (typing) commit(typing);
}

// ↑ ↓ move the number by a step and apply it at once.
function step(by: string): void {
  const now = typing;
  if (!now) return;
  const text = isNumberText(now.input.value) ? stepped(now.input.value, by) : undefined;
  if (text === undefined || !apply(now, text)) return;
  now.was = text;
  now.input.value = text;
}

function onKeyDown(event: KeyboardEvent): void {
  const cell = typing?.cell, by = event.shiftKey ? '1' : event.altKey ? '0.01' : '0.1';
  event.stopPropagation();
  if (event.key === 'Enter') {
    // The focus leaves first, and with nothing to do: to move it the browser lays out whatever has changed, and that would be
    // once for the focus and once more for what is drawn then.
    const now = typing;
    typing = undefined;
    cell?.focus({preventScroll: true});
    if (now) commit(now);
  } else if (event.key === 'Escape') {
    if (typing) close(typing);
    if (cell) refuse(cell, undefined);
    cell?.focus();
  } else if (event.key === 'ArrowUp') step(by);
  else if (event.key === 'ArrowDown') step(`-${by}`);
  else return;
  event.preventDefault();
}

// False: it is no cell of an input.
export function beginEditing(cell: HTMLTableCellElement, typed?: string): boolean {
  const {place, text} = cell.dataset;
  if (place === undefined || text === undefined) return false;
  leave();
  refuse(cell, undefined);
  const input = document.createElement('input');
  input.className = 'typed';
  input.size = 6;
  input.inputMode = 'decimal';
  input.autocomplete = 'off';
  input.value = typed ?? text;
  input.setAttribute('data-testid', `edit-${place}`);
  input.setAttribute('aria-label', `new value of ${place}`);
  input.addEventListener('keydown', onKeyDown);
  input.addEventListener('blur', leave);
  typing = {cell, input, place, was: text};
  cell.setAttribute('data-typing', '');
  cell.append(input);
  input.focus();
  if (typed === undefined) input.select();
  return true;
}
