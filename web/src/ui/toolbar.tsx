import type {View} from '../answers';
import {choose, edits, keysOn, show, shown} from '../store';
import {MaskChoice} from './mask';
import {Menus, Share} from './sharing';

interface Props {
  view: View;
  canUndo: boolean;
  canRedo: boolean;
  canReset: boolean;
  onUndo: () => void;
  onRedo: () => void;
  onReset: () => void;
  onWalk: (by: 1 | -1) => void;
}

function Scale({view}: {view: View}) {
  const value = edits.value.scale;
  return (
    <label>scale{' '}
      <input data-testid="scale" class="scale" size={7} inputMode="decimal" autocomplete="off"
        value={value ?? ''} placeholder={view.scale?.words}
        title={`${view.scale?.words ?? ''}; empty: as the case has it`}
        onChange={(event) => {
          const text = event.currentTarget.value.trim();
          choose('scale', text === '' ? undefined : text);
        }} />
    </label>
  );
}

export function Toolbar({view, canUndo, canRedo, canReset, onUndo, onRedo, onReset, onWalk}: Props) {
  const {hand} = shown.value;
  return (
    <div class="toolbar" role="group" aria-label="the case">
      <label>arithmetic{' '}
        <select data-testid="arith-mode" value={hand === undefined ? 'exact' : `hand${hand}`}
          onChange={(event) => {
            const value = event.currentTarget.value;
            show({hand: value === 'exact' ? undefined : Number(value.slice(4))});
          }}>
          <option value="exact">exact</option>
          {[1, 2, 3, 4].map((n) => <option key={n} value={`hand${n}`}>by hand, {n}</option>)}
          {hand !== undefined && ![1, 2, 3, 4].includes(hand) && <option value={`hand${hand}`}>by hand, {hand}</option>}
        </select>
      </label>
      {view.mask && <MaskChoice view={view} />}
      {view.scale && <Scale view={view} />}
      <span class="buttons">
        <button type="button" data-testid="undo" disabled={!canUndo} onClick={onUndo} title="Ctrl+Z">undo</button>
        <button type="button" data-testid="redo" disabled={!canRedo} onClick={onRedo} title="Ctrl+Y">redo</button>
        <button type="button" data-testid="reset" disabled={!canReset} onClick={onReset}>as given</button>
        <button type="button" data-testid="step-previous" onClick={() => onWalk(-1)} aria-label="previous step">←</button>
        <button type="button" data-testid="step-next" onClick={() => onWalk(1)} aria-label="next step">→</button>
        <Share />
        <Menus />
      </span>
      <label class="soft"><input type="checkbox" checked={keysOn.value} data-testid="keys"
        onChange={(event) => { keysOn.value = event.currentTarget.checked; }} /> keys c b ← →</label>
    </div>
  );
}
