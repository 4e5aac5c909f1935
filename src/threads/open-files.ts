import { readdirSync, readFileSync } from 'node:fs';

/** For the admin API's connections, files that are opened for a while, and connections on their way to a worker. */
const spareFiles = 256;

/**
 * How many connections may be open: at most what the limit of open files leaves beside the files that are open
 * now. At that limit nothing could be accepted, not even to be refused, and the acceptor would try without end.
 */
export function connectionRoom(connectionsMax: number): number {
  let limits: string;
  let openFiles: number;
  try {
    limits = readFileSync('/proc/self/limits', 'latin1');
    openFiles = readdirSync('/proc/self/fd').length;
  } catch {
    // Without /proc there is nothing to go by.
    return connectionsMax;
  }
  // Node has raised the soft limit to the hard one at its start; "unlimited" is no number.
  const filesMax = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Number.POSITIVE_INFINITY);
  return Math.max(1, Math.min(connectionsMax, filesMax - openFiles - spareFiles));
}
