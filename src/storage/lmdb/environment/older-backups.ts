import { readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { backupFile, readBackup } from './backup.ts';

/** Name of a backup's folder: the time in UTC, so that names sort by it. */
export function backupName(atMs: number): string {
  return new Date(atMs).toISOString().replace(/\.\d+/, '').replaceAll(':', '-');
}

const namePattern = /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ$/;

/**
 * Removes older backups beside a whole one, and returns how many: those under their time, of the same data folder,
 * whole and with nothing else in them, but for the newest, so that `keep` remain with this one.
 */
export async function removeOlderBackups(newest: string, id: string, keep: number): Promise<number> {
  const folder = dirname(newest);
  const others = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && namePattern.test(entry.name) && entry.name !== basename(newest))
    .map(({ name }) => join(folder, name))
    .filter((path) => isOnlyBackup(path, id))
    .sort()
    .reverse();
  const removed = others.slice(keep - 1);
  for (const path of removed) await rm(path, { recursive: true });
  return removed.length;
}

function isOnlyBackup(path: string, id: string): boolean {
  try {
    const { manifest, files } = readBackup(path);
    const known = [backupFile, ...files.map((file) => file.path)];
    const found = readdirSync(path, { recursive: true, withFileTypes: true }).filter(
      (entry) => !entry.isDirectory(),
    );
    return manifest.id === id && found.length === known.length;
  } catch {
    // Cut off, damaged, or of a newer version: for people to judge.
    return false;
  }
}
