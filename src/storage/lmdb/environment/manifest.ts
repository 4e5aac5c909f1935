import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { OperatorError } from '../../../core/errors.ts';
import { programVersion } from '../../../core/telemetry/version.ts';
import type { Move } from '../../../domain/placement.ts';

/**
 * Raise it when the layout of the folder or of a record changes, and add the step that brings older records there
 * (maintenance/upgrade-folder).
 */
export const formatVersion = 2;
export const manifestFile = 'manifest.json';
/** Exists instead of the manifest while a copy is incomplete, so that no server accepts the folder. */
export const copyFile = 'copy.json';

/** Engine of the data: environments in the folder, or databases. */
export type StoreEngine = 'lmdb' | 'postgres';

export interface Manifest {
  format: number;
  /** Set while an upgrade is unfinished: some records still have this format. `format` keeps older versions out. */
  upgradingFrom?: number;
  /** Id of this data folder and its backups; what is restored gets another. Absent in a folder from before it. */
  id?: string;
  /** Version of the program that wrote this. */
  version?: string;
  /** 0 if the data is in databases. */
  shards: number;
  /** Absent: LMDB. */
  engine?: 'postgres';
  /** False until the first start completes. Nothing was answered before, so it starts over. */
  complete: boolean;
  move?: Move;
}

/** @throws OperatorError if the folder is of the other engine. */
export function checkEngine(path: string, manifest: Manifest | undefined, engine: StoreEngine): void {
  const found = manifest === undefined ? engine : (manifest.engine ?? 'lmdb');
  if (found === engine) return;
  throw new OperatorError(
    engine === 'postgres'
      ? `The data folder ${path} contains data, but the configured store is in databases. Name another folder, or copy the data with "fleetpost copy".`
      : `The data folder ${path} belongs to a node with its data in databases. Configure its store, or name another folder.`,
  );
}

/**
 * Reads the manifest; undefined if the folder is empty.
 * @throws OperatorError if it is not a data folder, or of a newer format.
 */
export function readManifest(path: string): Manifest | undefined {
  let text: string;
  try {
    text = readFileSync(join(path, manifestFile), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    const others = readdirSync(path).filter((name) => name !== 'lock' && name !== `${manifestFile}.new`);
    if (others.length === 0) return undefined;
    if (others.includes(copyFile)) {
      throw new OperatorError(
        `The copy into ${path} is incomplete. Repeat the same "fleetpost copy" to continue it.`,
      );
    }
    if (others.includes('backup.json')) {
      throw new OperatorError(
        `${path} is a backup. Restore it with "fleetpost restore ${path} --data DIR" and serve that.`,
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
    // Reported below, with all other invalid manifests.
  }
  if (
    !Number.isInteger(manifest?.format) ||
    !Number.isInteger(manifest?.shards) ||
    typeof manifest?.complete !== 'boolean'
  ) {
    throw new OperatorError(`${join(path, manifestFile)} is damaged. Restore it from a backup.`);
  }
  const known = manifest as Manifest;
  refuseNewer(
    `The data folder ${path}`,
    known,
    'Run that or a newer one, or restore a backup from before the upgrade.',
  );
  return known;
}

/** @throws OperatorError with the remedy, for what a newer version wrote. */
export function refuseNewer(what: string, manifest: Manifest, remedy: string): void {
  if (manifest.format > formatVersion) throw otherFormat(what, manifest, remedy);
}

/** @throws OperatorError with the remedy, for what has to be upgraded before it can be read. */
export function refuseOlder(what: string, manifest: Manifest, remedy: string): void {
  if (formatOf(manifest) < formatVersion) throw otherFormat(what, manifest, remedy);
}

/** Names the version that wrote it, unless that is no version: a manifest is text from outside. */
function otherFormat(what: string, { format, version = '' }: Manifest, remedy: string): OperatorError {
  const writer = /^\d{1,6}(\.\d{1,6}){2}$/.test(version) ? `version ${version}` : 'another version';
  return new OperatorError(
    `${what} has format ${format}, written by ${writer} of Fleetpost; this is version ${programVersion()}, with format ${formatVersion}. Nothing was changed. ${remedy}`,
  );
}

/** The format that all records have at least. */
export function formatOf({ format, upgradingFrom = format }: Manifest): number {
  return upgradingFrom;
}
