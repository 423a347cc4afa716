// Why scores are scaled: plots over the size of a head, drawn by the engine.
import {useSignal} from '@preact/signals';

import {callEverything} from '../everything';
import {inWords} from './more';

const kRange = 'd_k=1..512';

async function drawn(): Promise<string> {
  const answer = await callEverything({call: 'sweep', sweep: kRange, format: 'svg'});
  if (!answer.ok) throw new Error(inWords(answer.problems));
  return `data:image/svg+xml,${encodeURIComponent(answer.bytes)}`;
}

export function SweepPanel() {
  const plot = useSignal(''), said = useSignal('');
  const draw = () => {
    said.value = 'Computing 1,000 draws for every size …';
    drawn().then((url) => {
      plot.value = url;
      said.value = '';
    }, (error: unknown) => { said.value = String(error); });
  };
  return (
    <section class="panel" aria-labelledby="sweep-title">
      <h2 id="sweep-title">Why the scale?</h2>
      <p class="soft">Random queries and 16 random keys of 1 to 512 numbers: how far their scores spread, and what softmax makes of them, with and without 1/√d_k.</p>
      {plot.value === '' && <button type="button" data-testid="sweep" onClick={draw}>Plot</button>}
      <p role="status">{said.value}</p>
      {plot.value !== '' && (
        <img class="plot" data-testid="sweep-plot" src={plot.value}
          alt="Spread of the scores, largest weight, entropy and Jacobian over d_k, unscaled and scaled" />)}
    </section>
  );
}
