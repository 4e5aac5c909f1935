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

/** Written beside and renamed over, so that a crash leaves the old file or the new one; on disk when it returns. */
export function writeDurable(file: string, content: object, mode: number): void {
  const temporary = `${file}.new`;
  writeFileSync(temporary, serialized(content), { mode, flush: true });
  renameSync(temporary, file);
  syncPath(dirname(file));
}

/**
 * Over a small file that is there already, in the blocks that it has: on a full disk. A crash may leave part of each, so
 * it is for what can be made again.
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

/** Has a file's bytes on disk, or the names in a folder: a file's own fsync does not promise these. */
export function syncPath(path: string): void {
  const handle = openSync(path, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
