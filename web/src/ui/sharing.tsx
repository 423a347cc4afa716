// The link, and menus whose content is fetched when they are opened.
import {useSignal} from '@preact/signals';

import {loadCopies, loadExports} from '../pages';
import {Opened} from './pages';

// False: it may not be written to, as in a frame.
export async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

export function Share() {
  const said = useSignal('');
  return (
    <>
      <button type="button" data-testid="share" onClick={async () => {
        said.value = await copied(location.href) ? 'link copied' : 'the link is in the address bar';
      }}>share</button>
      <span role="status" class="soft">{said.value}</span>
    </>
  );
}

export function Menus() {
  return (
    <>
      <Opened isMenu name="export" title="export" load={loadExports} />
      <Opened isMenu name="copy" title="copy as" load={loadCopies} />
    </>
  );
}
