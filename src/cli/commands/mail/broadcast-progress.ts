import { SingleBar } from 'cli-progress';
import { sleep } from '../../../core/async.ts';
import { type AdminClient, pathOf } from '../../admin-client.ts';

export interface BroadcastAnswer {
  broadcast_id: string;
  name: string;
  to: { devices?: number; tag?: string; all?: true };
  state: 'running' | 'paused' | 'done' | 'cancelled';
  devices: number | null;
  queued: number;
  refused: number;
  created_at: string;
  ended_at: string | null;
}

const askIntervalMs = 500;

export function broadcastsPath(fleet: string): string {
  return pathOf('fleets', fleet, 'broadcasts');
}

/** Settles when it has ended or is paused. It goes on when nobody asks. */
export async function follow(
  client: AdminClient,
  { fleet, json }: { fleet: string; json?: boolean },
  broadcast: BroadcastAnswer,
): Promise<BroadcastAnswer> {
  const format = 'Broadcast {bar} {value} of {total} devices, {eta_formatted} left';
  const bar = !json && process.stderr.isTTY ? new SingleBar({ format, stream: process.stderr }) : undefined;
  let last = broadcast;
  bar?.start(last.devices ?? 0, 0);
  try {
    while (last.state === 'running') {
      await sleep(askIntervalMs);
      last = await client.request<BroadcastAnswer>(
        'GET',
        `${broadcastsPath(fleet)}${pathOf(last.broadcast_id)}`,
      );
      bar?.setTotal(last.devices ?? last.queued + last.refused);
      bar?.update(last.queued + last.refused);
    }
  } finally {
    bar?.stop();
  }
  return last;
}

export function summaryOf({ broadcast_id, state, queued, refused }: BroadcastAnswer): string {
  const more = refused === 0 ? '' : ` (broadcast refusals ${broadcast_id} lists them)`;
  return `Broadcast ${broadcast_id} is ${state}; mails queued: ${queued}, refused: ${refused}${more}.`;
}
