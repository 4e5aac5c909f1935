import { type DeviceKey, deviceIdOf, deviceIdPattern, deviceKeyOf } from '../../../core/identity.ts';
import type { DeviceStatus } from '../../../domain/devices/device.ts';
import type { Shard } from '../../../domain/shard.ts';
import type { HostAnswer } from '../sandbox/run.ts';
import type { ActionJournal } from '../tables.ts';
import { type Reads, readState } from './action-state.ts';

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
