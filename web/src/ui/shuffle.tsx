// The tokens in the opposite order, and what the engine says of the outputs.
import {useSignal} from '@preact/signals';

import type {Shuffled} from '../answers';
import {fromEngine, noEdits} from '../edits';
import {askMore, caseName, replaceEdits} from '../store';
import {inWords} from './more';

export function ShufflePanel() {
  const told = useSignal<{name: string; words: string; movesAlong: boolean} | undefined>(undefined);
  const name = caseName.value;
  const turn = async () => {
    const answer = await askMore('shuffle', {edit: {}});
    if (!answer.ok) {
      told.value = {name, words: inWords(answer.problems), movesAlong: false};
      return;
    }
    const {edit, words, moves_along: movesAlong} = JSON.parse(answer.bytes) as Shuffled;
    replaceEdits(fromEngine(noEdits, edit));
    told.value = {name, words, movesAlong};
  };
  const now = told.value?.name === name ? told.value : undefined;
  return (
    <section class="panel" aria-labelledby="shuffle-title">
      <h2 id="shuffle-title">Does the order matter?</h2>
      <button type="button" data-testid="shuffle" onClick={() => void turn()}>Turn the tokens round</button>
      {now && <p role="status" data-testid="shuffle-words" data-moves-along={String(now.movesAlong)}>{now.words}</p>}
    </section>
  );
}
