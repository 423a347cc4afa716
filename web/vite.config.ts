import {fileURLToPath} from 'node:url';
import {defineConfig} from 'vitest/config';

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

// The engine comes from its own build (make wasm), packed by tools/pack.mjs: learn.wasm for the page as it opens,
// lesson.wasm for the rest of what lessons ask, glasshead.wasm for pages that ask for everything. Nothing else is fetched.
// The page as one file (mode one-file) comes packed, with a script that unpacks it (mode unpack): tools/one_file.mjs.
export default defineConfig(({mode}) => ({
  base: './',
  resolve: {alias: [{find: /^(learn|lesson|glasshead)\.wasm\.lzma/, replacement: path('../build/wasm/bin/$1.wasm.lzma')}]},
  server: {fs: {allow: [path('..')]}},
  build: {
    outDir: path('../build/web'),
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: {polyfill: false},
    // The page as one file holds its later parts, too.
    rollupOptions: mode === 'unpack' ? {input: path('src/unpack_page.ts')} : {output: {inlineDynamicImports: mode === 'one-file'}},
  },
  test: {include: ['tests/**/*.test.ts'], environment: 'node', testTimeout: 60_000},
}));
