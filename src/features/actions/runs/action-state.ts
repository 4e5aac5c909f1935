import { type DeviceKey, deviceIdOf, deviceIdPattern, deviceKeyOf } from '../../../core/identity.ts';
import { generateUuid, uuidBytesLength } from '../../../core/uuid.ts';
import type { DeviceStatus } from '../../../domain/devices/device.ts';
import type { Shard } from '../../../domain/shard.ts';
import { rangeUnder } from '../../../storage/tables/key-codec.ts';
import type { HostAnswer, RunError } from '../sandbox/run.ts';
import type { ActionJournal } from '../tables.ts';
import type { ReadPace } from './read-pace.ts';

export interface Sources {
  shards: { of(device: DeviceKey): Shard };
  journal: ActionJournal;
  readPace: ReadPace;
}

/**
 * Answers the host calls of a run, restricted to its own fleet and state, of which `stateUnder` has the JSON text under
 * a key, or `null`.
 */
export function answerFor(
  fleetId: string,
  stateUnder: (key: string) => string,
  { shards, readPace }: Pick<Sources, 'shards' | 'readPace'>,
): HostAnswer {
  return async (call) => {
    await readPace.take(fleetId);
    if (call.type === 'state') return stateUnder(call.key);
    if (!deviceIdPattern.test(call.id)) return 'null';
    const device = deviceKeyOf(fleetId, call.id);
    const status = await shards.of(device).devices.get(device);
    return JSON.stringify(status === undefined ? null : describe(status));
  };
}

/** `Device` of pool/api.ts. */
function describe({ device, name, tags, enabled, lastSeenMs, mailboxSize }: DeviceStatus): object {
  const lastSeen = lastSeenMs === undefined ? null : new Date(lastSeenMs).toISOString();
  return { id: deviceIdOf(device), name, tags, enabled, lastSeen, mailboxSize };
}

/** State keys that a run has read, and the version of each. */
export type Reads = Map<string, string>;

const none = '';

/** Key of an action's state in the table. */
export function stateKey(action: Buffer, key: string): Buffer {
  return Buffer.concat([action, Buffer.from(key, 'utf8')]);
}

/**
 * Returns the JSON text under a key, `null` if there is none, and notes the read. A value carries the version of the
 * write that stored it: a run whose reads are outdated when it ends runs again, so that concurrent runs never lose an
 * update.
 */
export function readState(
  tables: ActionJournal['tables'],
  action: Buffer,
  key: string,
  reads: Reads,
): string {
  const value = tables.state.get(stateKey(action, key));
  // Keeps the version read first: a run that sees two versions has acted on an outdated one.
  if (!reads.has(key)) reads.set(key, versionOf(value));
  return value === undefined ? 'null' : value.toString('utf8', uuidBytesLength);
}

/** True if all reads are still current. Call inside a write transaction. */
export function areCurrent(tables: ActionJournal['tables'], action: Buffer, reads: Reads): boolean {
  for (const [key, version] of reads) {
    if (versionOf(tables.state.get(stateKey(action, key))) !== version) return false;
  }
  return true;
}

/** Call inside a write transaction. Returns false, and writes nothing, if the state would exceed `keysMax`. */
export function writeState(
  tables: ActionJournal['tables'],
  action: Buffer,
  writes: readonly { key: string; value: string | null }[],
  keysMax: number,
): boolean {
  let more = 0;
  for (const { key, value } of writes) {
    more += Number(value !== null) - Number(tables.state.has(stateKey(action, key)));
  }
  // Counts only when keys are added, which is rare.
  if (more > 0 && tables.state.count(rangeUnder(action)) + more > keysMax) return false;
  const version = generateUuid();
  for (const { key, value } of writes) {
    if (value === null) tables.state.delete(stateKey(action, key));
    else tables.state.put(stateKey(action, key), Buffer.concat([version, Buffer.from(value, 'utf8')]));
  }
  return true;
}

/** The error of a run after which a state would have more than `keysMax`. */
export function stateFull(keysMax: number): RunError {
  return { code: 'state_full', msg: `The state would have more than ${keysMax} keys (actionStateKeysMax).` };
}

function versionOf(value: Buffer | undefined): string {
  return value === undefined ? none : value.toString('hex', 0, uuidBytesLength);
}
