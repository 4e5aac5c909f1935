import { mkdtempSync, rmSync, statSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openFile } from '../../src/cli/open-file.ts';

it('a file that cannot be prepared is closed, and one that can is handed over open', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'fleetpost-test-'));
  const file = join(folder, 'export');
  let opened: FileHandle | undefined;
  const refuse = async (handle: FileHandle): Promise<never> => {
    opened = handle;
    throw new Error('not alike');
  };
  await expect(openFile(file, 'wx', refuse)).rejects.toThrow('not alike');
  expect(opened?.fd).toBe(-1);
  const handle = await openFile(file, 'r+', async (open) => open);
  expect(handle.fd).toBeGreaterThan(0);
  await handle.close();
  expect(statSync(file).mode & 0o777).toBe(0o600);
  rmSync(folder, { recursive: true });
});
