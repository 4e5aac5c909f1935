import { statSync } from 'node:fs';

/**
 * What to say of a folder that somebody made so that other users can enter it; undefined where they cannot. What is
 * written there is still closed to them (see private-process.ts), but not what was there before.
 */
export function enteredByOthers(folder: string): string | undefined {
  const mode = statSync(folder, { throwIfNoEntry: false })?.mode ?? 0;
  return (mode & 0o077) === 0 ? undefined : `other users can enter ${folder}; run: chmod 700 ${folder}`;
}
