// When a change is drawn: at once where the browser shows it, else after the frame that shows the
// rest. Steps far from the screen are skipped by the browser (content-visibility), and of a large case
// they hold most of the cells.
import {computed, signal} from '@preact/signals';

import {pending} from '../everything';
import {afterFrame} from '../frame';

const skipped = new WeakSet<EventTarget>();
const waiting = new Map<object, () => void>();  // by what is drawn: a later change stands for an earlier one
const isDrawn = signal(true);

// "true": no answer is awaited, and everything is drawn.
export const isReady = computed(() => String(pending.value === 0 && isDrawn.value));

// Until the browser has said that it skips a step, the step counts as shown.
export function watchSkipped(): () => void {
  const name = 'contentvisibilityautostatechange';
  const note = (event: Event) => {
    if ((event as Event & {skipped: boolean}).skipped) skipped.add(event.target!);
    else skipped.delete(event.target!);
  };
  document.addEventListener(name, note, true);
  return () => document.removeEventListener(name, note, true);
}

function drawWaiting(): void {
  const changes = [...waiting.values()];
  waiting.clear();
  for (const change of changes) change();
  isDrawn.value = true;
}

// `change` draws `what`, after the frame.
export function drawLater(what: object, change: () => void): void {
  if (waiting.size === 0) afterFrame(drawWaiting);
  waiting.set(what, change);
  isDrawn.value = false;
}

// The same, but at once if the browser shows `place`, where it stands.
export function drawIn(place: Element, what: object, change: () => void): void {
  const step = place.closest('.step');
  if (step && skipped.has(step)) return drawLater(what, change);
  waiting.delete(what);
  change();
}
