// Where unpack_page.ts leaves the engine's module for the page's own script.
export const moduleKey = 'glassheadModule';
