import { OperatorError } from '../../../core/errors.ts';
import { Damage, DatabaseFile, recordsFile } from './database-file.ts';

/**
 * Checks an environment's file before LMDB maps it: reading the map of a truncated file would end the process by a
 * signal, and LMDB would create a missing one. Checks the first pages, the free lists, and the path to each table's
 * first record; all records only if the end of the file is missing.
 * @throws OperatorError
 */
export function checkEnvironment(folder: string): void {
  let file: DatabaseFile | undefined;
  try {
    file = new DatabaseFile(folder);
    for (const table of file.tables().values()) {
      table.get(Buffer.alloc(1));
      if (file.isShort) for (const _ of table.entries(refuse));
    }
    file.checkFreePages(refuse);
  } catch (error) {
    const reason = (error as Error).message;
    throw new OperatorError(
      error instanceof Damage
        ? `${folder}/${recordsFile} is damaged: ${reason}. Nothing was changed. Restore the data folder from a backup.`
        : `The data folder cannot be read: ${reason}. Nothing was changed. Fix that, or restore the folder from a backup.`,
    );
  } finally {
    file?.close();
  }
}

/** Reads every page in use of a closed environment, blocking its thread meanwhile. @throws Damage */
export function checkPages(folder: string): void {
  const file = new DatabaseFile(folder);
  try {
    file.checkFreePages(refuse);
    for (const table of file.tables().values()) for (const _ of table.entries(refuse));
  } finally {
    file.close();
  }
}

function refuse(damage: Damage): never {
  throw damage;
}
