import {effect} from '@preact/signals';
import {useEffect} from 'preact/hooks';

import type {Section, View} from '../answers';
import {isEdited} from '../edits';
import {idOfSel} from '../ids';
import {caseName, edits, history, keysOn, origin, outcome, redo, reset, setBaseline, show, shown, undo, compareWithBaseline, compares} from '../store';
import {Banners} from './banner';
import {Lessons} from './lessons';
import {MaskPanel} from './mask';
import {ByHandPanel, MistakeShown, MistakesPanel, PredictPanel, WhyPanel} from './panels';
import {kSlips} from './slips';
import {TableView} from './table';
import {Toolbar} from './toolbar';

// Cells that a number came from, and those it feeds, are outlined; the page's own attributes, which
// drawing leaves alone.
function outline(): void {
  const sel = shown.value.sel, now = origin.value;
  void outcome.value;
  requestAnimationFrame(() => {
    for (const name of ['data-from', 'data-feeds', 'data-selected'])
      for (const cell of document.querySelectorAll(`[${name}]`)) cell.removeAttribute(name);
    const mark = (id: string, name: string) => {
      document.querySelector(`[data-testid="${CSS.escape(id)}"]`)?.setAttribute(name, '');
    };
    for (const id of now?.feeds ?? []) mark(id, 'data-feeds');
    for (const id of now?.from ?? []) mark(id, 'data-from');
    const id = sel === undefined ? undefined : idOfSel(sel);
    if (id) mark(id, 'data-selected');
  });
}

function steps(view: View): number[] {
  return view.document.sections.map(({number}) => number).filter((number) => number > 0);
}

function walk(view: View, by: 1 | -1): void {
  const all = steps(view), at = all.indexOf(shown.peek().step ?? -1);
  const next = at < 0 ? all[by === 1 ? 0 : all.length - 1] : all[at + by];
  if (next === undefined) return;
  show({step: next});
  document.getElementById(`step-${next}`)?.scrollIntoView({block: 'nearest'});
}

function onKey(event: KeyboardEvent): void {
  const target = event.target as HTMLElement;
  if (target.closest('input:not([type=radio]):not([type=checkbox]), select, textarea')) return;
  const key = event.key.toLowerCase();
  if (event.ctrlKey || event.metaKey) {
    if (key === 'z') (event.shiftKey ? redo : undo)();
    else if (key === 'y') redo();
    else return;
    event.preventDefault();
    return;
  }
  if (!keysOn.peek() || event.altKey || target.closest('[role=grid], fieldset, [data-testid^=mask-]')) {
    if (!keysOn.peek() || event.altKey || !['c', 'b'].includes(key)) return;
  }
  const view = outcome.peek()?.view;
  if (key === 'c') compareWithBaseline();
  else if (key === 'b') setBaseline();
  else if (key === 'arrowright' && view) walk(view, 1);
  else if (key === 'arrowleft' && view) walk(view, -1);
  else return;
  event.preventDefault();
}

function SectionView({section, view}: {section: Section; view: View}) {
  const isCurrent = section.number > 0 && shown.value.step === section.number;
  const first = section.tables[0];
  const step = view.steps.find(({tap}) => tap === first?.tap);
  // By hand nothing is subtracted before exp, so these have no exact counterpart.
  const isSoftmax = (tap: string) => /^(?:exp|row_sum)$/.test(tap.slice(tap.lastIndexOf('.') + 1));
  const compared = (tap: string) => (!view.by_hand ? 'ghost' : isSoftmax(tap) ? 'none' : 'exact');
  const slip = step && kSlips[step.op];
  return (
    <section class={isCurrent ? 'step current' : 'step'} id={section.number > 0 ? `step-${section.number}` : undefined}
      aria-current={isCurrent ? 'step' : undefined}>
      <h2>
        {section.number > 0 && <span class="count">{section.number}</span>} {section.title}
        {section.formula && <span class="formula">{section.formula}</span>}
      </h2>
      {(section.remark || section.shape) && <p class="soft">{[section.remark, section.shape].filter(Boolean).join(' · ')}</p>}
      {isCurrent && step && <p class="sentence" data-testid="step-sentence">{step.sentence}</p>}
      {isCurrent && slip && <p class="soft">Common slip here: {slip}</p>}
      <div class="tables">
        {section.tables.map((table) => (
          <TableView key={`${table.tap} ${table.head}`} table={table} compares={compared(table.tap)}
            isInput={section.number === 0 && view.inputs.includes(table.tap)} />))}
      </div>
      {section.lines.map((line) => <p key={line}>{line}</p>)}
    </section>
  );
}

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

function Live({view}: {view: View}) {
  const sums = view.document.sections.flatMap(({tables}) => tables).filter(({tap}) => tap === 'weights')
    .flatMap((table) => table.sums.map((sum, n) => `row ${table.rows_named[n] ?? n} ${sum.empty ? 'has no key' : `sums to ${sum.text}`}`));
  const words = view.moved ? [view.moved.words, ...sums.slice(0, 4)].join('; ') : '';
  return <p class="visually-hidden" role="status" aria-live="polite" data-testid="live">{words}</p>;
}

function Rest({view}: {view: View}) {
  const {checks, footnotes, notes} = view.document;
  if (checks.length + footnotes.length + notes.length === 0) return null;
  return (
    <section class="step">
      <h2>Checks and notes</h2>
      <p>{checks.map(({id, text, ok, detail}) => (
        <span key={id} data-testid={`check-${id}`} class={ok ? 'check' : 'check bad'}>{text} {ok ? '✓' : `✗ ${detail}`}</span>))}</p>
      {footnotes.map((line) => <p class="soft" key={line}>{line}</p>)}
      {notes.map((line) => <p key={line}>Note: {line}</p>)}
    </section>
  );
}

export function App() {
  useEffect(() => {
    document.addEventListener('keydown', onKey);
    const stop = effect(outline);
    return () => {
      document.removeEventListener('keydown', onKey);
      stop();
    };
  }, []);
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
      <header class="top">
        <p class="brand">Glasshead</p>
        <Lessons />
      </header>
      <main data-ready="true" data-case={caseName.value}>
        <h1>{doc.question || doc.name}</h1>
        <p class="soft">{doc.title}</p>
        {doc.preamble.map((line) => <p class="soft" key={line}>{line}</p>)}
        <Toolbar view={view} canUndo={history.value.past.length > 0} canRedo={history.value.future.length > 0}
          canReset={isEdited(edits.value)} onUndo={undo} onRedo={redo} onReset={reset} onWalk={(by) => walk(view, by)} />
        <Banners />
        <Live view={view} />
        <div class="work">
          <div class="numbers" id="numbers" tabIndex={-1}>
            <MistakeShown view={view} />
            {doc.sections.map((section, n) => <SectionView key={n} section={section} view={view} />)}
            <Rest view={view} />
          </div>
          <div class="beside">
            <Changes view={view} />
            <WhyPanel />
            <MaskPanel view={view} />
            <ByHandPanel view={view} />
            <PredictPanel view={view} />
            <MistakesPanel />
          </div>
        </div>
      </main>
    </>
  );
}
