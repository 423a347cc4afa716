// A slider for the chosen number of an input: steps of 0.1 up to 2 to either side, made by the
// engine, so that 0.3 is 0.3.
import {computed} from '@preact/signals';

import {idOfSel} from '../ids';
import {history, outcome, setNumber, shown, slideNumber, stepped} from '../store';
import {cellsById} from './grid';

const kSide = 20;

interface Sliding {
  place: string;
  from: string;                     // the number when it was chosen: the middle
  texts?: (string | undefined)[];  // a number for each position, made when the slider is first moved; undefined: there is none
}

// Stays while the same cell is chosen, however its number moves.
let held: Sliding | undefined;

function positions(from: string): (string | undefined)[] {
  const walk = (by: string) => {
    const texts: (string | undefined)[] = [];
    for (let n = 0, text: string | undefined = from; n < kSide; ++n) {
      text = text === undefined ? undefined : stepped(text, by);
      texts.push(text);
    }
    return texts;
  };
  return [...walk('-0.1').reverse(), from, ...walk('0.1')];
}

const sliding = computed<(Sliding & {now: string}) | undefined>(() => {
  const id = idOfSel(shown.value.sel ?? '');
  void history.value;
  void outcome.value;
  const cell = id === undefined ? undefined : cellsById.get(id);
  const place = cell?.dataset['place'], now = place === undefined ? undefined : numberAt(id!);
  if (place === undefined || now === undefined) return undefined;
  if (held?.place !== place || !(held.texts?.includes(now) ?? held.from === now)) held = {place, from: now};
  return {...held, now};
});

// The text of an input's cell in what is shown now.
function numberAt(id: string): string | undefined {
  for (const {rows} of outcome.peek()?.view.document.sections[0]?.tables ?? [])
    for (const row of rows)
      for (const cell of row) if (cell.id === id) return cell.text;
  return undefined;
}

let isFirst = true;

export function Slider() {
  const now = sliding.value;
  if (!now) return null;
  const {place, texts, now: text} = now;
  return (
    <section class="panel" aria-labelledby="slider-title">
      <h2 id="slider-title">Slide {place}</h2>
      <label class="slide">
        <input type="range" data-testid="slider" min={0} max={2 * kSide} step={1} value={texts?.indexOf(text) ?? kSide}
          aria-label={`slide ${place}`} aria-valuetext={text}
          onPointerDown={() => { isFirst = true; }}
          onKeyDown={() => { isFirst = true; }}
          onInput={(event) => {
            const next = (held!.texts ??= positions(held!.from))[event.currentTarget.valueAsNumber];
            if (next === undefined) return;
            (isFirst ? setNumber : slideNumber)(place, next);
            isFirst = false;
          }} />
        <output data-testid="slider-now">{text}</output>
      </label>
    </section>
  );
}
