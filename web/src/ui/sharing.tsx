// The link, and menus whose content is fetched when they are opened.
import {useSignal} from '@preact/signals';

import {loadCopies, loadExports} from '../pages';
import {address, keepNow} from '../store';
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

const isWeb = /^https?:$/.test(location.protocol);

// A page on the web is a link. Of a page that is a file the path on this machine is nobody else's: its name goes along with the file,
// and in a frame, which has none, the state alone does.
async function share(): Promise<string> {
  keepNow();
  if (isWeb) return await copied(location.href) ? 'link copied' : 'the link is in the address bar';
  const file = location.protocol === 'file:' ? decodeURIComponent(location.pathname.replace(/^.*\//, '')) : '';
  const text = file + address.peek();
  const how = file === '' ? 'append it to the address of a page with this case' : 'pass the file on with it: it opens the file as it is now';
  return await copied(text) ? `copied; ${how}` : `${text} (${how})`;
}

export function Share() {
  const said = useSignal('');
  return (
    <>
      <button type="button" data-testid="share" onClick={async () => { said.value = await share(); }}>share</button>
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
