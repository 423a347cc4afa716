import {render} from 'preact';

import engineUrl from 'learn.wasm?url';

import {embeddedCase, hasEmbeddedModule} from './embedded';
import {haveEverything} from './everything';
import {addCases} from './lessons';
import {loadEngine} from './load';
import {serverCases, withoutToken} from './server';
import {start} from './store';
import {App} from './ui/app';
import {EngineTrouble} from './ui/banner';

const page = document.getElementById('page')!;

async function begin(): Promise<void> {
  let engine;
  try {
    engine = await loadEngine(engineUrl);
  } catch (error) {
    page.replaceChildren();
    render(<EngineTrouble why={String(error)} />, page);
    return;
  }
  if (hasEmbeddedModule()) haveEverything(engine);
  const fragment = withoutToken(location.hash || (embeddedCase?.start ?? ''));
  addCases(await serverCases());
  await start(engine, fragment);
  page.replaceChildren();
  render(<App />, page);
}

void begin();
