import {
  closeSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';

/** Writes beside the file and renames, so that a crash leaves the old or the new one; durable when it returns. */
export function writeDurable(file: string, content: object, mode: number): void {
  const temporary = `${file}.new`;
  writeFileSync(temporary, serialized(content), { mode, flush: true });
  renameSync(temporary, file);
  syncPath(dirname(file));
}

/**
 * Overwrites a small file in its existing blocks, for a full disk. A crash may leave a mixture, so use it only for
 * content that can be recreated.
 */
export function overwriteInPlace(file: string, content: object): void {
  rmSync(`${file}.new`, { force: true });
  const handle = openSync(file, 'r+');
  try {
    ftruncateSync(handle, writeSync(handle, serialized(content), 0));
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

export function isDiskFull(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '');
}

function serialized(content: object): string {
  return `${JSON.stringify(content, null, 2)}\n`;
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
