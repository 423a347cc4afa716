// Parts of the page that are fetched when they are opened. A page that is one file fetches nothing:
// it has the lessons alone, with all their parts in it (vite.config.ts).
import type {ComponentType} from 'preact';

const isOneFile = import.meta.env.MODE === 'one-file';

export type Load = () => Promise<{default: ComponentType}>;

export const loadDoctor: Load | undefined = isOneFile ? undefined : () => import('./ui/doctor');
export const loadSheet: Load | undefined = isOneFile ? undefined : () => import('./ui/sheet');
export const loadPlane: Load = () => import('./ui/plane');
export const loadMath = () => import('./ui/math');
export const loadPacked = () => import('./packed');
export const loadExports: Load = async () => ({default: (await import('./ui/taking')).Exports});
export const loadCopies: Load = async () => ({default: (await import('./ui/taking')).Copies});
