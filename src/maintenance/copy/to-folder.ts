import { OperatorError } from '../../core/errors.ts';
import { pack, unpack } from '../../storage/lmdb/environment/codec.ts';
import type { Environment } from '../../storage/lmdb/environment/environment.ts';
import type { Database } from '../../storage/postgres/connection/database.ts';
import type { Part } from '../parts/part.ts';
import { keyOfRow, rowsInDatabase } from './database-rows.ts';

/** Of each environment, while a copy goes into it: by the name of a part, the last key that was copied of it. */
export const progressTable = 'copied';

/** Copies a part from a database, on from where an earlier try has come: each batch and how far it is at once. */
export async function copyToFolder(
  part: Part,
  database: Database,
  environment: Environment,
  onRows: (count: number) => void,
): Promise<void> {
  const progress = environment.table(progressTable);
  const name = Buffer.from(part.name);
  const done = progress.getBinary(name);
  const after = done === undefined ? undefined : (unpack(done) as unknown[]);
  for await (const rows of rowsInDatabase(database, part, after)) {
    if (!environment.hasDiskToGrow() || !environment.hasRoom()) {
      throw new OperatorError('The disk of the data folder is full: make room, and give the command again.');
    }
    const last = rows.at(-1);
    environment.writeSync(() => {
      part.write(rows);
      if (last !== undefined) progress.putSync(name, pack(keyOfRow(part, last)));
    });
    onRows(rows.length);
  }
}

/** How far it has come is of no use to anybody any more. */
export function forgetProgress(environment: Environment): void {
  environment.writeSync(() => environment.table(progressTable).clearSync());
}
