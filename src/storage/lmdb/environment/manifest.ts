import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { OperatorError } from '../../../core/errors.ts';

/** Raised when the layout of the folder or of a record changes. */
export const formatVersion = 1;
export const manifestFile = 'manifest.json';
/** There while a copy into the folder has not come to its end, in place of the manifest: so no server takes it. */
export const copyFile = 'copy.json';

/**
 * A change of the shard count that has begun and not come to its end. The manifest's `shards` says which of
 * the two layouts is whole; what the other one has on disk is yet to be removed.
 */
export interface Move {
  from: number;
  to: number;
  /** Where the logs of the shards that both layouts have ended when it began. */
  logEnds: readonly number[];
}

/** What keeps the data: environments in the folder, or databases elsewhere. */
export type StoreEngine = 'lmdb' | 'postgres';

export interface Manifest {
  format: number;
  /** None where the data is elsewhere. */
  shards: number;
  /** Absent: LMDB. */
  engine?: 'postgres';
  /** False until the first start has come to its end. Nothing was answered before that, so it starts over. */
  complete: boolean;
  move?: Move;
}

/** @throws OperatorError where the folder is of the other kind. */
export function checkEngine(path: string, manifest: Manifest | undefined, engine: StoreEngine): void {
  const found = manifest === undefined ? engine : (manifest.engine ?? 'lmdb');
  if (found === engine) return;
  throw new OperatorError(
    engine === 'postgres'
      ? `The data folder ${path} holds data of its own, and the store of this configuration is in databases: name another folder, or bring the data there with "fleetpost copy".`
      : `The data folder ${path} is of a node whose data is in databases: configure its store, or name another folder.`,
  );
}

/**
 * What the folder says of itself; undefined where it is empty.
 * @throws OperatorError for what is no data folder, or one of another format.
 */
export function readManifest(path: string): Manifest | undefined {
  let text: string;
  try {
    text = readFileSync(join(path, manifestFile), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    const strangers = readdirSync(path).filter((name) => name !== 'lock' && name !== `${manifestFile}.new`);
    if (strangers.length === 0) return undefined;
    if (strangers.includes(copyFile)) {
      throw new OperatorError(
        `A copy into ${path} has not come to its end: give the same "fleetpost copy" again, which goes on with it.`,
      );
    }
    if (strangers.includes('backup.json')) {
      throw new OperatorError(
        `${path} is a backup: bring it back with "fleetpost restore ${path} --data DIR" and serve that.`,
      );
    }
    throw new OperatorError(
      `${path} is not a Fleetpost data folder: it has files but no manifest.json. Name an empty folder, or restore a backup into one.`,
    );
  }
  let manifest: Partial<Manifest> | undefined;
  try {
    manifest = JSON.parse(text) as Partial<Manifest>;
  } catch {
    // Said below, with everything else that is not a manifest.
  }
  if (
    !Number.isInteger(manifest?.format) ||
    !Number.isInteger(manifest?.shards) ||
    typeof manifest?.complete !== 'boolean'
  ) {
    throw new OperatorError(`${join(path, manifestFile)} is damaged: restore it from a backup.`);
  }
  const { format, shards, engine, complete, move } = manifest as Manifest;
  if (format !== formatVersion) {
    throw new OperatorError(
      `The data folder ${path} was written by another version of Fleetpost (format ${format}; this one knows ${formatVersion}): run that version.`,
    );
  }
  return { format, shards, ...(engine && { engine }), complete, ...(move && { move }) };
}
