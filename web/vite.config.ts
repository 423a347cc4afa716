import {fileURLToPath} from 'node:url';
import {defineConfig} from 'vitest/config';

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

// The engine comes from its own build (make wasm): learn.wasm for the page as it opens, glasshead.wasm for pages that
// ask for everything. Nothing else is fetched.
export default defineConfig(({mode}) => ({
  base: './',
  resolve: {alias: [{find: /^(learn|glasshead)\.wasm/, replacement: path('../build/wasm/bin/$1.wasm')}]},
  server: {fs: {allow: [path('..')]}},
  build: {
    outDir: path('../build/web'),
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: {polyfill: false},
    // A page that is one file holds its later parts, too.
    rollupOptions: {output: {inlineDynamicImports: mode === 'one-file'}},
  },
  test: {include: ['tests/**/*.test.ts'], environment: 'node', testTimeout: 60_000},
}));
