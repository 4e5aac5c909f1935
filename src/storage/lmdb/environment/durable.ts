import { closeSync, fsyncSync, ftruncateSync, openSync, rmSync, writeSync } from 'node:fs';
import { replaceFile } from '../../../core/replace-file.ts';

/** Replaces a small JSON file; durable when it returns. */
export function writeDurable(file: string, content: object, mode: number): void {
  replaceFile(file, serialized(content), { mode });
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
