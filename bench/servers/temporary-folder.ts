import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folders = new Set<string>();

process.on('exit', () => {
  for (const folder of folders) removeFolder(folder);
});

/** Makes a folder under os.tmpdir(), that is where TMPDIR says; gone when this process ends, or before. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'fleetpost-bench-'));
  // A peer may run as another user and has its data further down.
  chmodSync(folder, 0o711);
  folders.add(folder);
  return folder;
}

export function removeFolder(folder: string): void {
  // A process that is just ending may still write into it.
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  folders.delete(folder);
}
