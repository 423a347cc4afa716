/// <reference types="vite/client" />
declare module 'engine.wasm?url' {
  const url: string;
  export default url;
}
