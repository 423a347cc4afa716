// Arithmetic as on paper, beside the exact numbers.
import type {View} from '../answers';

export function ByHandPanel({view}: {view: View}) {
  if (!view.by_hand) return null;
  return (
    <section class="panel" aria-labelledby="hand-title">
      <h2 id="hand-title">By hand, beside exact</h2>
      <p class="soft">Every intermediate is rounded before the next step uses it, as on paper. Cells that drift show the exact number below.</p>
      <pre data-testid="by-hand" tabIndex={0}>{view.by_hand.join('\n')}</pre>
    </section>
  );
}
