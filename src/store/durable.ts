import { closeSync, fsyncSync, openSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** Written beside and renamed over, so that a crash leaves the old file or the new one; on disk when it returns. */
export function writeDurable(file: string, content: object, mode: number): void {
  const temporary = `${file}.new`;
  writeFileSync(temporary, `${JSON.stringify(content, null, 2)}\n`, { mode, flush: true });
  renameSync(temporary, file);
  syncPath(dirname(file));
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
