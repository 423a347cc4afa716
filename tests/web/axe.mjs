// What axe finds on a page, and the looks that every page is tried in.
import {readFileSync} from 'node:fs';

import {axePath} from './browser.mjs';

export const kLooks = {
  light: {colorScheme: 'light'},
  dark: {colorScheme: 'dark'},
  'forced colours': {forcedColors: 'active'},
  '320 px': {viewport: {width: 320, height: 640}},
};

// The address gives the content security policy no exception for axe: it is run by the debugger.
export async function findings(page) {
  await page.evaluate(readFileSync(axePath, 'utf8'));
  return page.evaluate(async () => {
    const {violations} = await globalThis.axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']});
    return violations.map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.target + ' ' + node.failureSummary.split('\n')[1]).join(' | ')}`);
  });
}
