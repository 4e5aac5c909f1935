import { statSync } from 'node:fs';

/**
 * Returns a warning about a folder that other users can enter; undefined if they cannot. New files in it are still
 * private (see private-process.ts), but not those that were there before.
 */
export function enteredByOthers(folder: string): string | undefined {
  const mode = statSync(folder, { throwIfNoEntry: false })?.mode ?? 0;
  return (mode & 0o077) === 0 ? undefined : `other users can enter ${folder}; run: chmod 700 ${folder}`;
}
