import {effect} from '@preact/signals';
import {useLayoutEffect} from 'preact/hooks';

import type {View} from '../answers';
import {type Edits, isEdited} from '../edits';
import {loadDoctor, loadPlane, loadSheet} from '../pages';
import {caseName, compares, edits, history, outcome, page, redo, reset, undo} from '../store';
import {Banners} from './banner';
import {ClaimsPanel} from './claims';
import {isReady, watchSkipped} from './drawing';
import {onKey, walk} from './keys';
import {Lessons} from './lessons';
import {MaskPanel} from './mask';
import {outline} from './outline';
import {ByHandPanel} from './hand';
import {MistakeShown, MistakesPanel} from './mistakes';
import {Later, Opened, PageLinks} from './pages';
import {PredictPanel} from './predict';
import {Rest} from './rest';
import {SectionView} from './section';
import {ShufflePanel} from './shuffle';
import {Slider} from './slider';
import {SweepPanel} from './sweep';
import {Toolbar} from './toolbar';
import {WhyPanel} from './why';

function Changes({view}: {view: View}) {
  if (!view.moved) return null;
  const what = compares.value === 'baseline' ? 'since the baseline' : 'by the last change';
  return (
    <section class="panel" aria-labelledby="changes-title">
      <h2 id="changes-title">What moved</h2>
      <p><b data-testid="changed-count">{view.moved.words}</b> <span class="soft">{what}</span></p>
      {view.why?.map((line) => <p key={line} data-testid="changed-why">{line}</p>)}
    </section>
  );
}

// Embeddings of two numbers can be drawn.
function PlanePanel({view}: {view: View}) {
  const isFlat = view.document.sections.some(({tables}) =>
    tables.some(({tap, shape}) => /^[EX]$/.test(tap) && shape.length === 2 && shape[1] === 2));
  if (!isFlat) return null;
  return (
    <section class="panel" aria-labelledby="plane-title">
      <h2 id="plane-title">The plane</h2>
      <Opened name="plane-open" title="The embeddings as points" load={loadPlane} />
    </section>
  );
}

function Live({view}: {view: View}) {
  const sums = view.document.sections.flatMap(({tables}) => tables).filter(({tap}) => tap === 'weights')
    .flatMap((table) => table.sums.map((sum, n) => `row ${table.rows_named[n] ?? n} ${sum.empty ? 'has no key' : `sums to ${sum.text}`}`));
  const words = view.moved ? [view.moved.words, ...sums.slice(0, 4)].join('; ') : '';
  return <p class="visually-hidden" role="status" aria-live="polite" data-testid="live">{words}</p>;
}

// What is not as the title says.
function changes({set, mask, hide, scale, emptyRow}: Edits): string {
  const parts = [
    set.length > 0 && 'numbers', mask !== undefined && (mask.startsWith('rows:') ? 'the mask' : `mask ${mask}`), hide.length > 0 && 'hidden keys',
    scale !== undefined && `scale ${scale}`, emptyRow !== undefined && 'rows without a key',
  ].filter(Boolean);
  return parts.length > 0 ? ` · changed: ${parts.join(', ')}` : '';
}

function Top() {
  return (
    <header class="top">
      <p class="brand">Glasshead</p>
      <PageLinks />
      <Lessons />
    </header>
  );
}

export function App() {
  // With the first drawing, not after it: a key may come at once.
  useLayoutEffect(() => {
    document.addEventListener('keydown', onKey);
    const unwatch = watchSkipped(), stop = effect(outline);
    return () => {
      document.removeEventListener('keydown', onKey);
      unwatch();
      stop();
    };
  }, []);
  if (page.value === 'doctor') return <><Top /><Later load={loadDoctor} /></>;
  const now = outcome.value;
  if (!now) return <main data-ready="true"><Banners /></main>;
  const {view} = now, doc = view.document;
  document.title = `${doc.question || doc.name} · Glasshead`;
  return (
    <>
      <a class="skip" href="#numbers" onClick={(event) => {
        event.preventDefault();
        document.getElementById('numbers')?.focus();
      }}>Skip to the numbers</a>
      <Top />
      <main data-ready={isReady} data-case={caseName.value}>
        <h1>{page.value === 'sheet' ? 'A sheet of your own' : doc.question || doc.name}
          {page.value !== 'sheet' && <span class="changed" data-testid="title-changed">{changes(edits.value)}</span>}</h1>
        <p class="soft">{doc.title}</p>
        {doc.preamble.map((line) => <p class="soft" key={line}>{line}</p>)}
        <Toolbar view={view} canUndo={history.value.past.length > 0} canRedo={history.value.future.length > 0}
          canReset={isEdited(edits.value)} onUndo={undo} onRedo={redo} onReset={reset} onWalk={(by) => walk(view, by)} />
        {page.value === 'sheet' && <Later load={loadSheet} />}
        <Banners />
        <Live view={view} />
        <div class="work">
          <div class="numbers" id="numbers" tabIndex={-1}>
            <MistakeShown />
            {doc.sections.map((section, n) => <SectionView key={n} section={section} view={view} />)}
            <Rest view={view} />
          </div>
          <div class="beside">
            <WhyPanel />
            <Changes view={view} />
            <Slider />
            <MaskPanel mask={view.mask} labels={view.labels} hidden={edits.value.hide} />
            <ByHandPanel view={view} />
            <PlanePanel view={view} />
            <PredictPanel view={view} />
            <ClaimsPanel />
            <MistakesPanel />
            {view.mask && <ShufflePanel />}
            {view.scale && <SweepPanel />}
          </div>
        </div>
      </main>
    </>
  );
}
