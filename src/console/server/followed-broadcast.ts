import type { BroadcastDocument } from '../../contract/broadcast.ts';
import type { Path } from '../../contract/routes/path.ts';
import { type Resource, useDocument } from './resource.ts';

const runningSeconds = 1;
/** One that is paused or held changes when somebody says so. */
const heldSeconds = 20;

function everySeconds({ state }: BroadcastDocument): number {
  return state === 'running' ? runningSeconds : heldSeconds;
}

/** True if all its mail is queued or refused. */
export function isBroadcastEnded({ ended_at }: BroadcastDocument): boolean {
  return ended_at !== null;
}

/** A broadcast, read each second while it runs, and until it has ended. */
export function useBroadcast(
  path: Path<'/fleets/{fleet_id}/broadcasts/{broadcast_id}'>,
): Resource<BroadcastDocument> {
  return useDocument(path, everySeconds, undefined, isBroadcastEnded);
}
