// An answer of the engine's larger part, asked for again whenever the case changes.
import {type Signal, useSignal} from '@preact/signals';
import {useLayoutEffect} from 'preact/hooks';

import type {Problem} from '../engine';
import {askMore, caseName, history} from '../store';

export interface Told<T> {
  value?: T;
  problems: Problem[];
}

// Nothing is asked for while it is off; the last answer stays until the next is there.
export function useMore<T>(call: string, more: object, isOn: boolean): Signal<Told<T>> {
  const told = useSignal<Told<T>>({problems: []});
  const name = caseName.value, {now} = history.value, options = JSON.stringify(more);
  // A layout effect: what is shown counts as unready from the moment that it is asked for.
  useLayoutEffect(() => {
    let isLate = false;
    if (!isOn) told.value = {problems: []};
    else
      void askMore(call, more).then((answer) => {
        if (isLate) return;
        told.value = answer.ok ? {value: JSON.parse(answer.bytes) as T, problems: []} : {problems: answer.problems};
      });
    return () => { isLate = true; };
  }, [call, options, isOn, name, now]);
  return told;
}

export const inWords = (problems: readonly Problem[]) =>
  problems.map(({where, what}) => `${where}: ${what}`).join('; ');
