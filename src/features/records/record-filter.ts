import { type DeviceKey, fleetIdLength } from '../../core/identity.ts';
import type { RecordKind, StoredRecord } from '../../domain/records/record.ts';

/** Which records of a fleet are wanted; what is absent or empty is not looked at. */
export interface RecordFilter {
  kinds?: readonly RecordKind[];
  schemas?: readonly string[];
  devices?: readonly DeviceKey[];
  /** Stored then or later, and before. */
  fromMs?: number;
  toMs?: number;
}

/** A filter as something to ask of each record. */
export function matcherOf(fleetId: string, filter: RecordFilter): (record: StoredRecord) => boolean {
  const { fromMs = Number.NEGATIVE_INFINITY, toMs = Number.POSITIVE_INFINITY } = filter;
  const kinds = new Set(filter.kinds ?? []);
  const schemas = new Set(filter.schemas ?? []);
  const devices = new Set(filter.devices ?? []);
  return (record) =>
    (devices.size === 0 ? record.device.slice(0, fleetIdLength) === fleetId : devices.has(record.device)) &&
    (kinds.size === 0 || kinds.has(record.kind)) &&
    (schemas.size === 0 || schemas.has(record.schema)) &&
    record.storedAtMs >= fromMs &&
    record.storedAtMs < toMs;
}
