/// <reference types="vite/client" />
declare module '*.wasm.lzma?url' {
  const url: string;
  export default url;
}
