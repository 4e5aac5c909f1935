import type { BroadcastDocument } from '../../contract/broadcast.ts';
import type { Path } from '../../contract/routes/path.ts';
import { type Resource, useDocument } from './resource.ts';

const everySeconds = 1;

/** True if all its mail is queued or refused. */
export function isBroadcastEnded({ ended_at }: BroadcastDocument): boolean {
  return ended_at !== null;
}

/** A broadcast, read each second until it has ended. */
export function useBroadcast(
  path: Path<'/fleets/{fleet_id}/broadcasts/{broadcast_id}'>,
): Resource<BroadcastDocument> {
  return useDocument(path, everySeconds, undefined, isBroadcastEnded);
}
