import { OperatorError } from '../../../core/errors.ts';
import { Damage, DatabaseFile, recordsFile } from './database-file.ts';

/**
 * Looks at the file of an environment before LMDB maps it: where the file is cut off, reading the map would end
 * the process by a signal, and where it is missing LMDB would make an empty one. Its first pages, the
 * lists of its free pages, and the way to the first record of each table; all of it only where the end is missing.
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
        : `The data folder cannot be read: ${reason}. Nothing was changed. Mend that, or restore the folder from a backup.`,
    );
  } finally {
    file?.close();
  }
}

function refuse(damage: Damage): never {
  throw damage;
}
