// What stands below the steps: checks, footnotes, and what the lesson prints otherwise and why.
import {useSignal} from '@preact/signals';

import type {Document, View} from '../answers';
import {inWords, useMore} from './more';

type Check = Document['checks'][number];

function CheckLine({id, text, ok, detail}: Check) {
  return <span data-testid={`check-${id}`} class={ok ? 'check' : 'check bad'}>{text} {ok ? '✓' : `✗ ${detail}`}</span>;
}

// The fused path is a second attention, in the engine's larger part: compared when it is asked for.
function FusedCheck() {
  const isOn = useSignal(false);
  const {value, problems} = useMore<{checks: Check[]}>('checks', {}, isOn.value).value;
  const fused = value?.checks.find(({id}) => id === 'fused-path');
  if (!isOn.value)
    return <button type="button" data-testid="check-fused" onClick={() => { isOn.value = true; }}>Compare with the fused path</button>;
  if (fused) return <CheckLine {...fused} />;
  return <span>{problems.length > 0 ? inWords(problems) : value ? 'The fused path has no check here.' : 'Comparing …'}</span>;
}

export function Rest({view}: {view: View}) {
  const {checks, footnotes, notes} = view.document;
  if (checks.length + footnotes.length + notes.length === 0) return null;
  return (
    <section class="step">
      <h2>Checks and notes</h2>
      <p>
        {checks.map((check) => <CheckLine key={check.id} {...check} />)}
        {view.mask && !checks.some(({id}) => id === 'fused-path') && <FusedCheck />}
      </p>
      {footnotes.map((line) => <p class="soft" key={line}>{line}</p>)}
      {notes.map((line) => <p key={line}>Note: {line}</p>)}
    </section>
  );
}
