import { deviceIdOf } from '../../../core/identity.ts';
import type { StoredRecord } from '../../../domain/records/record.ts';
import type { Sender } from '../senders/sender.ts';
import type { ForwarderStats } from './stats.ts';

/** Of each device whose last record is kept in memory, for each forwarder. */
const keptDevicesMax = 3;
const keptBytesMax = 1_024;
/** Devices whose first record is tried while none was taken yet. */
const devicesMax = 8;

/** Keeps the last of what was taken, in memory of its own: what it came in may be large. */
export function keepTaken({ taken }: ForwarderStats, records: readonly StoredRecord[]): void {
  const last = records.at(-1);
  if (last === undefined || last.payload.length > keptBytesMax) return;
  // The newest of all comes last.
  taken.delete(last.device);
  taken.set(last.device, { ...last, id: Buffer.from(last.id), payload: Buffer.from(last.payload) });
  for (const oldest of taken.keys()) {
    if (taken.size <= keptDevicesMax) break;
    taken.delete(oldest);
  }
}

/**
 * Whether the destination takes records while it does not take these: then it is not out of order, and something is
 * wrong with one of them. What it took last is sent once more; where nothing was since the start, the first record of
 * each of some devices, which breaks no device's order.
 */
export async function isTakingOthers(
  records: readonly StoredRecord[],
  sender: Sender,
  progress: ForwarderStats,
  signal: AbortSignal,
): Promise<boolean> {
  const known = [...progress.taken.values()].reverse();
  for (const record of known.length === 0 ? firstOfDevices(records) : known) {
    if (signal.aborted) return false;
    const { result } = await sender.send([record], signal, { isAgain: true });
    if (result !== 'delivered') continue;
    keepTaken(progress, [record]);
    return true;
  }
  return false;
}

function firstOfDevices(records: readonly StoredRecord[]): StoredRecord[] {
  const first = new Map<string, StoredRecord>();
  for (const record of records) {
    const deviceId = deviceIdOf(record.device);
    if (!first.has(deviceId)) first.set(deviceId, record);
    if (first.size === devicesMax) break;
  }
  // Alone it would tell nothing of itself.
  return records.length === 1 ? [] : [...first.values()];
}
