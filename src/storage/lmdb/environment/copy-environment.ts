import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { open } from 'lmdb';
import { OperatorError } from '../../../core/errors.ts';
import { checkPages } from './check-environment.ts';
import { Damage, recordsFile } from './database-file.ts';

/**
 * Keeps the pages of an environment's present snapshot from being reused, until what it resolves to is called. Where a
 * server runs this is its part: `holdSnapshot` in its process.
 */
export type SnapshotHold = (folder: string) => Promise<() => void | Promise<void>>;

export interface EnvironmentCopyOptions {
  mapBytesMax: number;
  hold: SnapshotHold;
  /** Called before another try. */
  onDamaged(reason: string): void;
}

const copiesMax = 3;

/**
 * Copies an environment, even while in use, and reads every page of the copy; makes a damaged one again.
 * @throws OperatorError if all were damaged; Node's or LMDB's error if it cannot be copied.
 */
export async function copyEnvironment(
  source: string,
  target: string,
  options: EnvironmentCopyOptions,
): Promise<void> {
  let isCompact = true;
  for (let copy = 1; ; copy += 1) {
    try {
      await copyOnce(source, target, isCompact, options);
      checkPages(target);
      return;
    } catch (error) {
      rmSync(join(target, recordsFile), { force: true });
      const { message } = error as Error;
      if (!(error instanceof Damage || message.startsWith('MDB_'))) throw error;
      if (copy === copiesMax) {
        throw new OperatorError(
          `${copiesMax} copies of ${source} were damaged, the last one thus: ${message}. Stop the server and run "fleetpost verify", which says where it is damaged`,
        );
      }
      options.onDamaged(message);
      if (message.startsWith(leakedPages)) isCompact = false;
    }
  }
}

/**
 * LMDB's refusal to copy the trees alone when pages are neither in use nor free, which harms nobody: it then copies the
 * whole file.
 */
const leakedPages = 'MDB_INCOMPATIBLE';

/**
 * Copies an environment by a link with a lock file of its own. lmdb-js 3 may undo the last commit of another process
 * when it opens the same lock file: it stores there the last transaction that it has read before (ITS#9496 of LMDB).
 * What LMDB itself would hold in that file, the pages of its snapshot, the holder does.
 */
async function copyOnce(
  source: string,
  target: string,
  isCompact: boolean,
  { mapBytesMax, hold }: EnvironmentCopyOptions,
): Promise<void> {
  const link = join(target, 'source');
  mkdirSync(link, { mode: 0o700 });
  const release = await hold(source);
  try {
    symlinkSync(resolve(source, recordsFile), join(link, recordsFile));
    // The map must hold what the file grows to meanwhile, which may slightly exceed its limit.
    const root = open({ path: link, noSubdir: false, readOnly: true, mapSize: 2 * mapBytesMax, maxDbs: 32 });
    try {
      await root.backup(target, isCompact);
    } finally {
      await root.close();
    }
  } finally {
    await release();
    rmSync(link, { recursive: true, force: true });
  }
}

/**
 * Holds the present snapshot of an environment that this process has open: pages that are freed from now on are not
 * reused until it is released. Another process may not open it, see `copyEnvironment`.
 */
export function holdSnapshot(folder: string): () => Promise<void> {
  // A second handle: those of a process share LMDB's environment, which this does not open again.
  const root = open({ path: folder, noSubdir: false, readOnly: true, maxDbs: 32 });
  const snapshot = root.useReadTransaction();
  return async () => {
    snapshot.done();
    await root.close();
  };
}
