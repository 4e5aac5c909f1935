import { chownSync, closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

export interface Replacement {
  mode: number;
  /** Who is to own it: whoever writes it, if absent. */
  owner?: { uid: number; gid: number };
  /** Path to write to before it takes the file's place. */
  temporary?: string;
}

/** Writes beside the file and renames, so that a crash leaves the old or the new one; durable when it returns. */
export function replaceFile(
  file: string,
  content: string,
  { mode, owner, temporary = `${file}.new` }: Replacement,
): void {
  // A file that a crash left here would keep its own mode.
  rmSync(temporary, { force: true });
  writeFileSync(temporary, content, { mode, flag: 'wx', flush: true });
  if (owner !== undefined) chownSync(temporary, owner.uid, owner.gid);
  renameSync(temporary, file);
  syncPath(dirname(file));
}

/** Syncs a file's bytes, or a folder's names, which a file's own fsync does not cover. */
export function syncPath(path: string): void {
  const handle = openSync(path, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
