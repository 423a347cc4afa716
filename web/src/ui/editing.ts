// The one cell that is being typed into.
import {signal} from '@preact/signals';

import {isNumberText} from '../address';
import {setNumber, stepped} from '../store';

export interface Editing {
  id: string;     // of the cell
  place: string;  // among the edits
  text: string;
  was: string;    // what Esc brings back
}

export const editing = signal<Editing | null>(null);
export const refused = signal<{id: string; why: string} | null>(null);

export function beginEditing(id: string, place: string, text: string, typed?: string): void {
  refused.value = null;
  editing.value = {id, place, text: typed ?? text, was: text};
}

// Text that isn't a number keeps the old value, marks the cell and says why.
function apply({id, place, was}: Editing, text: string): boolean {
  if (text === was) {
    refused.value = null;
    return true;
  }
  const why = text === '' ? 'nothing was typed' : setNumber(place, text);
  if (why !== undefined) {
    refused.value = {id, why: `${why}; the old value ${was} stays`};
    return false;
  }
  refused.value = null;
  return true;
}

export function commitEditing(): void {
  const now = editing.peek();
  if (!now) return;
  editing.value = null;
  apply(now, now.text.trim());
}

export function cancelEditing(): void {
  editing.value = null;
  refused.value = null;
}

// ↑ ↓ move the number by a step and apply it at once.
export function stepEditing(by: string): void {
  const now = editing.peek();
  if (!now) return;
  const text = isNumberText(now.text) ? stepped(now.text, by) : undefined;
  if (text === undefined || !apply(now, text)) return;
  editing.value = {...now, text, was: text};
}
