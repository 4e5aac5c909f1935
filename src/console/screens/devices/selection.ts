import type {
  ChangedDevicesDocument,
  DeviceChangesBody,
  DeviceFilterDocument,
} from '../../../contract/device.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { apiUrl, call } from '../../server/client.ts';
import { type Resource, useResource } from '../../server/resource.ts';

/** Devices that fit filters: as the API and the CLI take them, and as the query bar has them. None: all of the fleet. */
export interface FilteredDevices {
  filter: DeviceFilterDocument;
  flags: readonly string[];
  text: string;
}

/** Devices that something is to be done with. */
export type DeviceSelection = { ids: readonly string[] } | FilteredDevices;

export const wholeFleet: FilteredDevices = { filter: {}, flags: [], text: '' };

export function isWholeFleet(selection: DeviceSelection): boolean {
  return 'filter' in selection && Object.keys(selection.filter).length === 0;
}

export interface DeviceCount {
  devices: number;
  /** Not known of devices that were selected one by one. */
  offline: number | undefined;
}

/** Counts what is selected, as often as it takes. */
export function useDeviceCount(
  fleetId: string,
  selection: DeviceSelection | undefined,
): Resource<DeviceCount> {
  const path = pathTo('/fleets/{fleet_id}/devices:count', { fleet_id: fleetId });
  const key =
    selection === undefined
      ? undefined
      : 'ids' in selection
        ? `${fleetId} ${selection.ids.length} ids`
        : apiUrl(path, selection.filter);
  return useResource(key, async (signal): Promise<DeviceCount> => {
    if (selection === undefined || 'ids' in selection)
      return { devices: selection?.ids.length ?? 0, offline: undefined };
    let devices = 0;
    let offline = 0;
    for (let after: string | null = ''; after !== null; ) {
      const query = { ...selection.filter, ...(after !== '' && { after }) };
      const step: { devices: number; offline: number; next: string | null } = await call('GET', path, {
        query,
        signal,
      });
      devices += step.devices;
      offline += step.offline;
      after = step.next;
    }
    return { devices, offline };
  });
}

/** `12 devices`, `1 device`. */
export function devicesText(count: number): string {
  return `${count.toLocaleString('en')} ${count === 1 ? 'device' : 'devices'}`;
}

export interface ChangeProgress {
  changed: number;
  unchanged: number;
  refused: ChangedDevicesDocument['refused'];
  /** By which it is taken back; undefined if they are too many to be held. */
  changedIds: readonly string[] | undefined;
}

export type BulkEdit = { enabled: boolean } | { add_tags: string[] } | { remove_tags: string[] };

/** Ids of one call, as many as the API takes. */
const idsPerCallMax = 500;
const shownRefusalsMax = 50;
const heldIdsMax = 20_000;

/** The selection as the API takes it, one for each call that begins anew. */
export function selectsOf(selection: DeviceSelection): DeviceChangesBody['select'][] {
  if ('filter' in selection) return [isWholeFleet(selection) ? { all: true } : selection.filter];
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
  signal?: AbortSignal,
  onProgress: (progress: ChangeProgress) => void = () => {},
): Promise<ChangeProgress> {
  let progress: ChangeProgress = { changed: 0, unchanged: 0, refused: [], changedIds: [] };
  onProgress(progress);
  const path = pathTo('/fleets/{fleet_id}/devices:change', { fleet_id: fleetId });
  for (const select of selectsOf(selection)) {
    for (let after: string | null | undefined; after !== null; ) {
      const body = { select, change, ...(after !== undefined && { after }) };
      const answer: ChangedDevicesDocument = await call('POST', path, { body, ...(signal && { signal }) });
      const ids = progress.changedIds && [...progress.changedIds, ...answer.changed_ids];
      progress = {
        changed: progress.changed + answer.changed,
        unchanged: progress.unchanged + answer.unchanged,
        refused: [...progress.refused, ...answer.refused].slice(0, shownRefusalsMax),
        changedIds: ids !== undefined && ids.length <= heldIdsMax ? ids : undefined,
      };
      after = answer.next;
      onProgress(progress);
    }
  }
  return progress;
}

/** What takes a change back from the devices that it changed. */
export function inverseOf(change: BulkEdit): BulkEdit {
  if ('enabled' in change) return { enabled: !change.enabled };
  return 'add_tags' in change ? { remove_tags: change.add_tags } : { add_tags: change.remove_tags };
}
