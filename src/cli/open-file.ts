import { type FileHandle, open } from 'node:fs/promises';

/**
 * Opens a file for its owner only and prepares it; closes it if that fails. Node closes a forgotten handle by itself
 * some time later, with a warning, and will end the process for it.
 */
export async function openFile<T>(
  path: string,
  flags: string,
  prepare: (handle: FileHandle) => Promise<T>,
): Promise<T> {
  const handle = await open(path, flags, 0o600);
  try {
    return await prepare(handle);
  } catch (error) {
    await handle.close();
    throw error;
  }
}
