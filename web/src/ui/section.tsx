// One step: its title and formula, its matrices, and while it is walked to what it does and what
// people get wrong there.
import type {Section, View} from '../answers';
import {shown} from '../store';
import {Formula} from './formula';
import {kSlips} from './slips';
import {TableView} from './table';

export function SectionView({section, view}: {section: Section; view: View}) {
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
        {section.formula && <span class="formula"><Formula text={section.formula} /></span>}
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
