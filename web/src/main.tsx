import {render} from 'preact';

import engineUrl from 'learn.wasm.lzma?url';

import {embeddedCase, hasEmbeddedModule} from './embedded';
import {haveEverything} from './everything';
import {addCases} from './lessons';
import {loadEngine} from './load';
import {serverCases, withoutToken} from './server';
import {fetchCaseOf, start} from './store';
import {App} from './ui/app';
import {EngineTrouble} from './ui/banner';

const page = document.getElementById('page')!;

async function begin(): Promise<void> {
  const fragment = withoutToken(location.hash || (embeddedCase?.start ?? ''));
  const loading = loadEngine(engineUrl), cases = serverCases();
  loading.catch(() => {});  // said below, when it is waited for
  addCases(await cases);
  await fetchCaseOf(fragment);
  let engine;
  try {
    engine = await loading;
  } catch (error) {
    page.replaceChildren();
    render(<EngineTrouble why={String(error)} />, page);
    return;
  }
  if (hasEmbeddedModule()) haveEverything(engine);
  await start(engine, fragment);
  page.replaceChildren();
  render(<App />, page);
}

void begin();
