// Keys of the whole page: ← → walk the steps, c and b choose what is compared with, Ctrl+Z and
// Ctrl+Y undo and redo, Esc lets go of what is pinned. Single keys can be switched off and never act while somebody types.
import type {View} from '../answers';
import {compareWithBaseline, keysOn, outcome, redo, setBaseline, show, shown, undo, unpin} from '../store';

function steps(view: View): number[] {
  return view.document.sections.map(({number}) => number).filter((number) => number > 0);
}

export function walk(view: View, by: 1 | -1): void {
  const all = steps(view), at = all.indexOf(shown.peek().step ?? -1);
  const next = at < 0 ? all[by === 1 ? 0 : all.length - 1] : all[at + by];
  if (next === undefined) return;
  show({step: next});
  document.getElementById(`step-${next}`)?.scrollIntoView({block: 'nearest'});
}

export function onKey(event: KeyboardEvent): void {
  const target = event.target as HTMLElement;
  if (target.closest('input:not([type=radio]):not([type=checkbox]), select, textarea')) return;
  const key = event.key.toLowerCase();
  if (event.ctrlKey || event.metaKey) {
    if (key === 'z') (event.shiftKey ? redo : undo)();
    else if (key === 'y') redo();
    else return;
    event.preventDefault();
    return;
  }
  if (event.key === 'Escape') return unpin();
  if (!keysOn.peek() || event.altKey || target.closest('[role=grid], fieldset, [data-testid^=mask-]')) {
    if (!keysOn.peek() || event.altKey || !['c', 'b'].includes(key)) return;
  }
  const view = outcome.peek()?.view;
  if (key === 'c') compareWithBaseline();
  else if (key === 'b') setBaseline();
  else if (key === 'arrowright' && view) walk(view, 1);
  else if (key === 'arrowleft' && view) walk(view, -1);
  else return;
  event.preventDefault();
}
