import {render} from 'preact';

import engineUrl from 'engine.wasm?url';

import {loadEngine} from './engine';
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
  start(engine);
  page.replaceChildren();
  render(<App />, page);
}

void begin();
