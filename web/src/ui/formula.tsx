// A formula: text until the part that sets it is there, which is fetched when a number is first chosen.
import {signal} from '@preact/signals';

import {loadMath} from '../pages';

const set = signal<Awaited<ReturnType<typeof loadMath>>['mathOf'] | undefined>(undefined);
let isAsked = false;

export function wantMath(): void {
  if (isAsked) return;
  isAsked = true;
  loadMath().then(({mathOf}) => { set.value = mathOf; }, () => { isAsked = false; });
}

export function Formula({text}: {text: string}) {
  return <>{set.value?.(text) ?? text}</>;
}
