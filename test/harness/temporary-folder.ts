import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A data folder that is gone with the server that is stopped last on it. */
export function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), 'fleetpost-test-'));
}
