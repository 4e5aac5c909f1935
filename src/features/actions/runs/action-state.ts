import { type DeviceKey, deviceIdOf, deviceIdPattern, deviceKeyOf } from '../../../core/identity.ts';
import { generateUuid, uuidBytesLength } from '../../../core/uuid.ts';
import type { DeviceStatus } from '../../../domain/devices/device.ts';
import type { Shard } from '../../../domain/shard.ts';
import type { HostAnswer } from '../sandbox/run.ts';
import { type ActionJournal, rangeOf } from '../tables.ts';

export interface Sources {
  shards: { of(device: DeviceKey): Shard };
  journal: ActionJournal;
}

/** Answers what a run asks: of its own fleet and its own state alone. */
export function answerFor(
  fleetId: string,
  action: Buffer | undefined,
  reads: Reads,
  sources: Sources,
): HostAnswer {
  return async (question) => {
    if (question.type === 'state') {
      if (action === undefined) return 'null';
      sources.journal.refresh();
      return readState(sources.journal.tables, action, question.key, reads);
    }
    if (!deviceIdPattern.test(question.id)) return 'null';
    const device = deviceKeyOf(fleetId, question.id);
    const status = await sources.shards.of(device).device(device);
    return JSON.stringify(status === undefined ? null : describe(status));
  };
}

/** `Device` of actions/api.ts. */
function describe({ device, name, tags, enabled, lastSeenMs, mailboxSize }: DeviceStatus): object {
  const lastSeen = lastSeenMs === undefined ? null : new Date(lastSeenMs).toISOString();
  return { id: deviceIdOf(device), name, tags, enabled, lastSeen, mailboxSize };
}

/** What a run has read of its action's state, and which version of it. */
export type Reads = Map<string, string>;

const none = '';

function stateKey(action: Buffer, key: string): Buffer {
  return Buffer.concat([action, Buffer.from(key, 'utf8')]);
}

/**
 * The JSON text under a key, `null` where there is none; noted in `reads`. A value carries the version of the
 * write that stored it, so that a run whose reads are not true any more when it ends is run again, and runs of
 * several devices side by side never lose what another one counted.
 */
export function readState(
  tables: ActionJournal['tables'],
  action: Buffer,
  key: string,
  reads: Reads,
): string {
  const value = tables.state.getBinary(stateKey(action, key));
  // What it read first: a run that sees two versions has acted upon one that is not true any more.
  if (!reads.has(key)) reads.set(key, versionOf(value));
  return value === undefined ? 'null' : value.toString('utf8', uuidBytesLength);
}

/** Inside a write transaction: whether what was read is as it was. */
export function areCurrent(tables: ActionJournal['tables'], action: Buffer, reads: Reads): boolean {
  for (const [key, version] of reads) {
    if (versionOf(tables.state.getBinary(stateKey(action, key))) !== version) return false;
  }
  return true;
}

/** Inside a write transaction. False, and nothing written, when the state would have more keys than that. */
export function writeState(
  tables: ActionJournal['tables'],
  action: Buffer,
  writes: readonly { key: string; value: string | null }[],
  keysMax: number,
): boolean {
  let more = 0;
  for (const { key, value } of writes) {
    more += Number(value !== null) - Number(tables.state.doesExist(stateKey(action, key)));
  }
  // Nearly always they are keys that there are: then nothing is to be counted.
  if (more > 0 && tables.state.getKeysCount(rangeOf(action)) + more > keysMax) return false;
  const version = generateUuid();
  for (const { key, value } of writes) {
    if (value === null) tables.state.removeSync(stateKey(action, key));
    else tables.state.putSync(stateKey(action, key), Buffer.concat([version, Buffer.from(value, 'utf8')]));
  }
  return true;
}

function versionOf(value: Buffer | undefined): string {
  return value === undefined ? none : value.toString('hex', 0, uuidBytesLength);
}
