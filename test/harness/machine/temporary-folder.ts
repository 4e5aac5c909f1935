import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A data folder that is gone with the server that is stopped last on it. */
export function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), 'fleetpost-test-'));
}

/** Makes a folder for what is large, or holds programs: memory may forbid to run them. */
export function folderOnDisk(): string {
  return mkdtempSync(join(process.env.TESTS_ON_DISK ?? tmpdir(), 'fleetpost-test-'));
}
