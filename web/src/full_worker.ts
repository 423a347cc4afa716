// Answers the page's calls beside it (full.ts).
import {Engine} from './engine';

let engine: Engine | undefined;

self.onmessage = ({data}: MessageEvent<{module?: WebAssembly.Module; request?: object}>) => {
  if (data.module) engine = new Engine(data.module);
  if (data.request && engine) self.postMessage(engine.call(data.request));
};
