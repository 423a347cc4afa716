// Pages that are fetched when they are opened. A page that is one file fetches nothing, so it has the
// lessons alone.
import type {ComponentType} from 'preact';

const isOneFile = import.meta.env.MODE === 'one-file';

type Load = () => Promise<{default: ComponentType}>;

export const loadDoctor: Load | undefined = isOneFile ? undefined : () => import('./ui/doctor');
export const loadSheet: Load | undefined = isOneFile ? undefined : () => import('./ui/sheet');
