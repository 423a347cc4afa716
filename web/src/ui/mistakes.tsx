// Mistakes on these numbers: the list, and one of them beside the right run.
import {useSignal} from '@preact/signals';

import type {Mistake} from '../answers';
import {show, shown} from '../store';
import {inWords, useMore} from './more';
import {TableView} from './table';

interface Listed {
  mistakes: {id: string; title: string; hidden_because: string}[];
}

export function MistakesPanel() {
  const isOpen = useSignal(shown.peek().mistake !== undefined);
  const {value, problems} = useMore<Listed>('mistakes', {}, isOpen.value).value;
  const chosen = shown.value.mistake;
  const mistakes = value?.mistakes ?? [];
  const bare = chosen?.split(':')[0];
  return (
    <section class="panel" aria-labelledby="mistakes-title">
      <h2 id="mistakes-title">Mistakes</h2>
      {!isOpen.value && (
        <button type="button" data-testid="mistakes-open" onClick={() => { isOpen.value = true; }}>
          What goes wrong here, and how it looks
        </button>)}
      {problems.length > 0 && <p class="bad">{inWords(problems)}</p>}
      {isOpen.value && (
        <fieldset class="radios"><legend>Make a mistake on these numbers</legend>
          <label><input type="radio" name="mistake" checked={chosen === undefined}
            onChange={() => show({mistake: undefined})} /> none</label>
          {mistakes.map(({id, title, hidden_because}) => (
            <label key={id} title={hidden_because || undefined}>
              <input type="radio" name="mistake" data-testid={`mistake-${id}`} checked={bare === id}
                onChange={() => show({mistake: id})} /> {title}
              {hidden_because && <small class="soft"> (can't show here)</small>}
            </label>))}
        </fieldset>)}
    </section>
  );
}

// The wrong run, and the right one beside it.
export function MistakeShown() {
  const id = shown.value.mistake;
  const {value: mistake, problems} = useMore<Mistake>('mistake', {mistake: id ?? ''}, id !== undefined).value;
  if (id === undefined) return null;
  if (problems.length > 0)
    return <p role="alert" class="banner bad" data-testid="banner-error" data-code="no-such-mistake">The mistake {id} can't be shown here: {inWords(problems)}</p>;
  if (!mistake) return null;
  const {sections} = mistake.document;
  return (
    <section class="panel mistake" aria-labelledby="mistake-title" data-testid="mistake-shown">
      <h2 id="mistake-title">A mistake: {mistake.title}</h2>
      <p>{mistake.done}</p>
      {mistake.stops_because && <p class="bad">Stops: {mistake.stops_because}</p>}
      <div class="tables">
        {sections.map((section, n) => section.tables.map((table, t) => (
          <TableView key={`${n}-${t}`} table={table} compares="right"
            title={[table.tap, table.leading, n % 2 === 0 ? 'wrong' : 'right'].filter(Boolean).join(', ')}
            prefix={n % 2 === 0 ? 'wrong-' : 'right-'} />)))}
      </div>
      <dl>
        <dt>tell-tale</dt><dd>{mistake.tell_tale}</dd>
        {mistake.hidden_because && <><dt>hidden here</dt><dd>{mistake.hidden_because}</dd></>}
        <dt>look for</dt><dd><code>{mistake.cause}</code></dd>
        <dt>fix</dt><dd>{mistake.fix}: <code>{mistake.fix_code}</code></dd>
      </dl>
    </section>
  );
}
