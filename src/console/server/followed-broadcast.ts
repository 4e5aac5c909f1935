import type { BroadcastDocument } from '../../contract/broadcast.ts';
import { callAs } from './client.ts';
import { type Resource, useResource } from './resource.ts';

const everySeconds = 1;

/** True if all its mail is queued or refused. */
export function isBroadcastEnded({ ended_at }: BroadcastDocument): boolean {
  return ended_at !== null;
}

/** A broadcast, read each second until it has ended. */
export function useBroadcast(path: string): Resource<BroadcastDocument> {
  return useResource(
    path,
    (signal) => callAs<BroadcastDocument>('GET', path, { signal }),
    everySeconds,
    isBroadcastEnded,
  );
}
