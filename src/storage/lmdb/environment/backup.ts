import { createHash } from 'node:crypto';
import { createReadStream, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { open as openFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { open } from 'lmdb';
import { OperatorError } from '../../../core/errors.ts';
import { type JournalName, journalNames } from './data-folder.ts';
import { recordsFile } from './database-file.ts';
import { syncPath, writeDurable } from './durable.ts';
import { formatVersion, type Manifest, manifestFile } from './manifest.ts';

/**
 * `backup.json`, written last: a folder without it is a backup that was cut off. LMDB's pages have no checksum,
 * so the digests are what tells a copy that has decayed since.
 */
interface BackupManifest {
  /** That of the data folder. */
  manifest: Manifest;
  takenAt: string;
  /**
   * The journals in front of all shards: where their copy is older, mails are sent again that the shards know by
   * what they are for; a newer one would take mails for sent that the copies of the shards do not have. The
   * registry behind all shards: then every device's fleet is in it.
   */
  files: readonly BackupFile[];
}

interface BackupFile {
  /** Within the folder, `shards/0/data.mdb` say. */
  path: string;
  bytes: number;
  sha256: string;
}

export interface BackupSource {
  path: string;
  shardFolders: readonly string[];
  registryFolder: string;
  mapBytesMax: number;
}

const backupFile = 'backup.json';

export function isBackup(folder: string): boolean {
  return existsSync(join(folder, backupFile));
}

/** @throws Error when the folder has anything in it, or cannot be made. */
export function makeEmptyFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (readdirSync(folder).length > 0) throw new Error(`${folder} is not empty`);
}

/** All environments, in the order in which they are copied. */
export function foldersOf({ path, shardFolders, registryFolder }: BackupSource): string[] {
  const journals = journalNames.map((name) => join(path, name));
  return [...journals, ...shardFolders, registryFolder];
}

/** The environments of a backup, by what they are. */
export function environmentsOf(
  path: string,
  { files }: BackupManifest,
): Pick<BackupSource, 'shardFolders' | 'registryFolder'> & { journalFolders: Record<JournalName, string> } {
  const journalFolders = { actions: join(path, 'actions'), control: join(path, 'control') };
  const folders = files
    .filter((file) => journalOf(file) === undefined)
    .map((file) => join(path, dirname(file.path)));
  return { journalFolders, shardFolders: folders.slice(0, -1), registryFolder: folders.at(-1) ?? path };
}

/** Copies a data folder, in use or not, into an empty folder. Each shard is as it was at one moment. */
export async function takeBackup(source: BackupSource, target: string): Promise<BackupManifest> {
  const manifest = JSON.parse(readFileSync(join(source.path, manifestFile), 'utf8')) as Manifest;
  const files: BackupFile[] = [];
  for (const folder of foldersOf(source)) {
    const path = join(relative(source.path, folder), recordsFile);
    const copy = join(target, path);
    mkdirSync(dirname(copy), { recursive: true, mode: 0o700 });
    await copyEnvironment(folder, dirname(copy), source.mapBytesMax);
    files.push({ path, ...(await digestOf(copy)) });
  }
  await sync(target, files);
  const backup: BackupManifest = { manifest, takenAt: new Date().toISOString(), files };
  writeDurable(join(target, backupFile), backup, 0o644);
  return backup;
}

/** @throws OperatorError when it is not a whole backup, or of another format. */
export function readBackup(folder: string): BackupManifest {
  let backup: BackupManifest;
  try {
    backup = JSON.parse(readFileSync(join(folder, backupFile), 'utf8')) as BackupManifest;
    if (!Number.isInteger(backup.manifest.format) || !isWhole(backup)) {
      throw new Error('not a manifest of a backup');
    }
  } catch (error) {
    if (isMissing(error)) {
      throw new OperatorError(
        `${folder} is not a backup, or one that was cut off: it has no ${backupFile}. Name another.`,
      );
    }
    throw new OperatorError(`${join(folder, backupFile)} is damaged or cannot be read: use another backup.`);
  }
  const { format } = backup.manifest;
  if (format !== formatVersion) {
    throw new OperatorError(
      `The backup ${folder} was made by another version of Fleetpost (format ${format}; this one knows ${formatVersion}): use that version.`,
    );
  }
  for (const { path, bytes } of backup.files) {
    const size = statSync(join(folder, path), { throwIfNoEntry: false })?.size;
    if (size === bytes) continue;
    throw new OperatorError(
      `The backup ${folder} is not whole: ${path} ${size === undefined ? 'is missing' : `has ${size} of ${bytes} bytes`}. Use another.`,
    );
  }
  return backup;
}

/** Whether a file of a backup still has the bytes that were written. */
export async function isUnchanged(folder: string, file: BackupFile): Promise<boolean> {
  return (await digestOf(join(folder, file.path))).sha256 === file.sha256;
}

/**
 * Brings a backup back into an empty folder. The manifest is written last: without it no server takes the folder.
 * @throws OperatorError when a file is not what was backed up.
 */
export async function restoreBackup(
  folder: string,
  backup: BackupManifest,
  target: string,
  onBytes: (bytes: number) => void,
): Promise<void> {
  for (const { path, sha256 } of backup.files) {
    const copy = join(target, path);
    mkdirSync(dirname(copy), { recursive: true, mode: 0o700 });
    const digest = createHash('sha256');
    const source = createReadStream(join(folder, path), { highWaterMark: 1024 * 1024 });
    const handle = await openFile(copy, 'wx', 0o600);
    await pipeline(
      source,
      async function* (chunks: AsyncIterable<Buffer>) {
        for await (const chunk of chunks) {
          digest.update(chunk);
          onBytes(chunk.length);
          yield chunk;
        }
      },
      handle.createWriteStream(),
    );
    if (digest.digest('hex') !== sha256) {
      throw new OperatorError(`the backup has decayed (${path} is not what was backed up), use another`);
    }
  }
  await sync(target, backup.files);
  writeDurable(join(target, manifestFile), backup.manifest, 0o644);
}

/** LMDB's own copy, of one read transaction: writers go on, and what they free is kept until it is done. */
async function copyEnvironment(source: string, target: string, mapBytesMax: number): Promise<void> {
  // The map must hold what the file grows to while it is copied, which may be a little over its limit.
  const root = open({ path: source, noSubdir: false, readOnly: true, mapSize: 2 * mapBytesMax, maxDbs: 32 });
  try {
    await root.backup(target, false);
  } finally {
    await root.close();
  }
}

/** Has files, and all folders on the way to them, on disk. */
async function sync(folder: string, files: readonly BackupFile[]): Promise<void> {
  const folders = new Set<string>();
  for (const { path } of files) {
    const handle = await openFile(join(folder, path), 'r+');
    await handle.sync();
    await handle.close();
    for (let at = dirname(path); at !== '.'; at = dirname(at)) folders.add(at);
  }
  for (const one of folders) syncPath(join(folder, one));
  syncPath(folder);
  syncPath(dirname(folder));
}

async function digestOf(file: string): Promise<{ bytes: number; sha256: string }> {
  const digest = createHash('sha256');
  let bytes = 0;
  for await (const chunk of createReadStream(file, { highWaterMark: 1024 * 1024 })) {
    digest.update(chunk as Buffer);
    bytes += (chunk as Buffer).length;
  }
  return { bytes, sha256: digest.digest('hex') };
}

function isWhole({ manifest, files }: BackupManifest): boolean {
  const journals = files.map(journalOf).filter((name) => name !== undefined);
  const others = files.length - journals.length;
  return (
    files.every(isBackupFile) &&
    journals.length === journalNames.length &&
    new Set(journals).size === journals.length &&
    others === manifest.shards + 1
  );
}

function journalOf({ path }: BackupFile): JournalName | undefined {
  return journalNames.find((name) => path === join(name, recordsFile));
}

/** Paths come from a file that may have been anywhere: none leads out of the folder. */
function isBackupFile({ path, bytes, sha256 }: BackupFile): boolean {
  return /^([a-z0-9-]+\/)+data\.mdb$/.test(path) && Number.isInteger(bytes) && typeof sha256 === 'string';
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT';
}
