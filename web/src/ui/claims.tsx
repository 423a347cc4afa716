// What the lesson says, sentence by sentence, checked by the engine; each can be tried.
import {useSignal} from '@preact/signals';

import type {Claims} from '../answers';
import {fromEngine, untouched} from '../edits';
import {cellPlace, selOf} from '../ids';
import {edits, replaceEdits, show} from '../store';
import {inWords, useMore} from './more';

function look({cell, edit}: Claims['claims'][number]): void {
  const given = untouched(edits.peek());
  replaceEdits(edit === undefined ? given : fromEngine(given, edit));
  const place = cellPlace(cell);
  if (place) show({sel: selOf(place)});
}

export function ClaimsPanel() {
  const isOpen = useSignal(false);
  const told = useMore<Claims>('claims', {edit: {}}, isOpen.value);
  const {value, problems} = told.value;
  return (
    <section class="panel" aria-labelledby="claims-title">
      <h2 id="claims-title">What the lesson says</h2>
      <details onToggle={(event) => { isOpen.value = event.currentTarget.open; }}>
        <summary data-testid="claims-open">Every sentence, checked on these numbers</summary>
        {problems.length > 0 && <p class="bad">{inWords(problems)}</p>}
        <ul class="plain">
          {value?.claims.map((claim, n) => (
            <li key={claim.says}>
              <span class={claim.holds ? 'ok' : 'bad'} role="img" aria-label={claim.holds ? 'holds' : 'does not hold'}>
                {claim.holds ? '✓' : '✗'}</span>{' '}
              <span data-testid={`claim-${n}`} data-holds={String(claim.holds)}>{claim.says}</span>{' '}
              {claim.found && <span class="bad">{claim.found}</span>}{' '}
              {(claim.edit !== undefined || claim.cell !== '') && (
                <button type="button" data-testid={`claim-look-${n}`} aria-label={`look at: ${claim.says}`}
                  onClick={() => look(claim)}>look</button>)}
            </li>))}
        </ul>
      </details>
    </section>
  );
}
