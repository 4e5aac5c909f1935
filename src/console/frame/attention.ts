import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { AttentionDocument } from '../../contract/monitoring/attention.ts';
import { pathTo } from '../../contract/routes/path.ts';
import { path } from '../page/router.ts';
import { type Resource, useDocument } from '../server/resource.ts';

/** Interval on the screen that lists it; other screens only show one number of it, in the navigation. */
const listedEverySeconds = 15;
const elsewhereEverySeconds = 30;

/** Attention items of the fleet on the screen, read in one place, for the navigation and for Now. */
export const AttentionContext = createContext<Resource<AttentionDocument> | undefined>(undefined);

/** Reads it, for what is around every screen. */
export function useAttention(fleetId: string): Resource<AttentionDocument> {
  const isListed = path.value[1] === undefined;
  return useDocument(
    pathTo('/fleets/{fleet_id}/attention', { fleet_id: fleetId }),
    isListed ? listedEverySeconds : elsewhereEverySeconds,
  );
}

/** Dead letters of the last day; 0 until they are known. */
export function useLettersToday(): number {
  const { value } = useContext(AttentionContext) ?? {};
  return value?.items.find(({ kind }) => kind === 'dead_letters')?.count ?? 0;
}
