import type {
  ChangedDevicesDocument,
  DeviceChangesBody,
  DeviceFilterDocument,
} from '../../../contract/device.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { call } from '../../server/client.ts';

/** Devices that something is to be done with: some by their ids, or all that fit the filter on the screen. */
export type DeviceSelection =
  | { ids: readonly string[] }
  | { filter: DeviceFilterDocument; count: number | undefined };

export interface ChangeProgress {
  changed: number;
  unchanged: number;
  refused: ChangedDevicesDocument['refused'];
}

export type BulkEdit = { enabled: boolean } | { add_tags: string[] } | { remove_tags: string[] };

/** Ids of one call, as many as the API takes. */
const idsPerCallMax = 500;
const shownRefusalsMax = 50;

/** The selection as the API takes it, one for each call that begins anew. */
export function selectsOf(selection: DeviceSelection): DeviceChangesBody['select'][] {
  if ('filter' in selection) {
    const isAll = Object.keys(selection.filter).length === 0;
    return [isAll ? { all: true } : selection.filter];
  }
  const { ids } = selection;
  return Array.from({ length: Math.ceil(ids.length / idsPerCallMax) }, (_, index) => ({
    device_ids: ids.slice(index * idsPerCallMax, (index + 1) * idsPerCallMax),
  }));
}

/** Changes all that are selected, some at a time, and tells how far it is. @throws CallError. */
export async function changeDevices(
  fleetId: string,
  selection: DeviceSelection,
  change: BulkEdit,
  signal: AbortSignal,
  onProgress: (progress: ChangeProgress) => void,
): Promise<void> {
  const progress: ChangeProgress = { changed: 0, unchanged: 0, refused: [] };
  onProgress(progress);
  const path = pathTo('/fleets/{fleet_id}/devices:change', { fleet_id: fleetId });
  for (const select of selectsOf(selection)) {
    for (let after: string | null | undefined; after !== null; ) {
      const body = { select, change, ...(after !== undefined && { after }) };
      const answer: ChangedDevicesDocument = await call('POST', path, { body, signal });
      progress.changed += answer.changed;
      progress.unchanged += answer.unchanged;
      progress.refused = [...progress.refused, ...answer.refused].slice(0, shownRefusalsMax);
      after = answer.next;
      onProgress({ ...progress });
    }
  }
}
