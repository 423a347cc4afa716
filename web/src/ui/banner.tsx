import type {Problem} from '../engine';
import {largerTrouble} from '../everything';
import {choose, linkTrouble, outcome} from '../store';

export function EngineTrouble({why}: {why: string}) {
  return (
    <main class="start" data-ready="true">
      <h1>Glasshead</h1>
      <p role="alert" class="banner bad" data-testid="banner-error" data-code="engine-not-loaded">
        The engine, a WebAssembly module, could not be loaded: {why}. Reload the page; if that
        doesn't help, the folder it is served from lacks <code>assets/*.lzma</code>, or the browser
        has WebAssembly switched off. Your edits are in the address and are kept.
      </p>
    </main>
  );
}

const sentence = ({where, what}: Problem) => (where === '' ? what : `${where}: ${what}`);
const isEmptyRow = ({where, what}: Problem) => where.startsWith('row ') && what.includes('no allowed key');

export function LinkTrouble() {
  const trouble = linkTrouble.value;
  if (trouble.length === 0) return null;
  return (
    <div role="alert" class="banner" data-testid="banner-link" data-code="link-partly-understood">
      <p>Link partly understood. Left out: {trouble.join(' · ')}</p>
      <button type="button" onClick={() => { linkTrouble.value = []; }}>Close</button>
    </div>
  );
}

// What the engine refuses is said in its words; the edit stays, and undo takes it back.
export function Banners() {
  const problems = outcome.value?.problems ?? [];
  const hasEmptyRow = problems.some(isEmptyRow);
  return (
    <>
      <LinkTrouble />
      {largerTrouble.value && <p role="alert" class="banner bad" data-testid="banner-larger" data-code="engine-not-loaded">{largerTrouble.value}</p>}
      {problems.length > 0 && (
        <div role="alert" class="banner bad" data-testid="banner-error"
          data-code={hasEmptyRow ? 'no-key-allowed' : 'edit-refused'}>
          {hasEmptyRow
            ? problems.map(({where}) => (
              <p key={where}>{where} has no allowed key, and softmax of nothing is undefined.</p>))
            : problems.map((problem) => <p key={problem.where}>{sentence(problem)}</p>)}
          {hasEmptyRow && (
            <p>
              Allow it a key, or{' '}
              <button type="button" data-testid="empty-row-zero"
                onClick={() => choose('emptyRow', 'zero')}>
                let its weights and output be 0
              </button>
            </p>
          )}
        </div>
      )}
    </>
  );
}
