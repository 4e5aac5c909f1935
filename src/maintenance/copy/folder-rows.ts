import { OperatorError } from '../../core/errors.ts';
import type { Row } from '../../storage/postgres/connection/database.ts';
import type { FoundRow, Part } from '../parts/part.ts';
import { batchRowsMax, copyBatchBytesMax } from './database-rows.ts';

/** Rows of a data folder, and the key of the record that they end with. */
export interface FolderRows {
  rows: Row[];
  last: Buffer;
}

/**
 * The rows of a part in the order of its keys, some at a time, behind a key. Each time from a range of its own: none is
 * held open while somebody waits.
 */
export function* rowsInFolder(part: Part, after?: Buffer): Generator<FolderRows> {
  for (let last = after; ; ) {
    const batch = take(part, last);
    if (batch === undefined) return;
    last = batch.last;
    yield batch;
  }
}

function take(part: Part, after: Buffer | undefined): FolderRows | undefined {
  const rows: Row[] = [];
  let last: Buffer | undefined;
  let bytes = 0;
  for (const found of checked(part, after)) {
    last = Buffer.from(found.key);
    for (const row of found.rows) {
      rows.push(row);
      bytes += bytesOf(row);
    }
    if (rows.length >= batchRowsMax || bytes >= copyBatchBytesMax) break;
  }
  return last === undefined ? undefined : { rows, last };
}

/** @throws OperatorError where a record is damaged. */
function* checked(part: Part, after: Buffer | undefined): Generator<FoundRow<Row>> {
  try {
    yield* part.read(after);
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw new OperatorError(
      `A record of the ${part.name} cannot be read (${(error as Error).message}): "fleetpost verify" says which.`,
    );
  }
}

function bytesOf({ payload, value }: Row): number {
  const long = payload ?? value;
  return long instanceof Uint8Array ? long.length : 0;
}
