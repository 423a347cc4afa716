// Inputs on which mistakes can be told apart, to run one's program on.
import {useSignal} from '@preact/signals';

import {busy, makeProbe, type Probe, probe, probeProblems, probeShape} from '../doctor_state';
import {save} from './saving';

const kSizes: [name: string, label: string, hint: string][] = [
  ['batch', 'batch', '1'], ['heads', 'query heads', '1'], ['kv_heads', 'key/value heads', 'as many'], ['q_len', 'queries', '12'],
  ['kv_len', 'keys', '20'], ['d_k', 'size of q and k', '8'], ['d_v', 'size of v', 'as d_k'],
];

function saveProbe({file}: Probe): void {
  save(Uint8Array.from(atob(file), (char) => char.charCodeAt(0)), 'probe.safetensors', 'application/octet-stream');
}

function Made({made}: {made: Probe}) {
  return (
    <div data-testid="probe-made">
      <p><button type="button" data-testid="probe-save" onClick={() => saveProbe(made)}>save probe.safetensors</button>{' '}
        It holds q, k and v{made.has_mask ? ', and allowed: the pairs that may attend' : ''}.</p>
      {made.alike.map((group) => (
        <p key={group.join()}>{group[0] === 'right' ? 'Can’t be seen in this shape: ' : 'Alike in this shape: '}
          {(group[0] === 'right' ? group.slice(1) : group).join(', ')}</p>))}
      <p>All others are at least {made.least_distance} tolerances apart. Run your program on them, then drop its output here,
        or: <code data-testid="probe-command">{made.command}</code></p>
    </div>
  );
}

export function ProbePanel() {
  const seed = useSignal('1');
  return (
    <section class="panel" aria-labelledby="probe-title">
      <h2 id="probe-title">A probe</h2>
      <p class="soft">Inputs, with the options above, on which every mistake of the catalogue gives other numbers than the right answer.</p>
      <div class="options">
        {kSizes.map(([name, label, hint]) => (
          <label key={name}>{label}{' '}
            <input data-testid={`probe-${name}`} size={5} inputMode="numeric" autocomplete="off" placeholder={hint} value={probeShape.value[name] ?? ''}
              onChange={(event) => { probeShape.value = {...probeShape.value, [name]: event.currentTarget.value}; }} />
          </label>))}
        <label>seed{' '}
          <input data-testid="probe-seed" size={5} inputMode="numeric" autocomplete="off" value={seed.value}
            onChange={(event) => { seed.value = event.currentTarget.value; }} />
        </label>
      </div>
      <p><button type="button" data-testid="probe-make" disabled={busy.value !== ''} onClick={() => void makeProbe(seed.value)}>make a probe</button></p>
      {probeProblems.value.length > 0 && (
        <div role="alert" class="banner bad" data-testid="banner-error" data-code="probe-refused">
          {probeProblems.value.map(({where, what}) => <p key={where}><b>{where}</b> {what}</p>)}
        </div>)}
      {probe.value && <Made made={probe.value} />}
    </section>
  );
}
