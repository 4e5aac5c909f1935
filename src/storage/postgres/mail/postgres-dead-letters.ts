import type { DeviceKey } from '../../../core/identity.ts';
import {
  type DeadLetter,
  type DeadLetterFilter,
  type DeadLetterWithPayload,
  isWanted,
  type LetterOrder,
} from '../../../domain/mail/ended-mail.ts';
import { ShardDeadLetters } from '../../../domain/mail/shard-mail.ts';
import type { Page } from '../../../domain/page.ts';
import type { Database, Row } from '../connection/database.ts';
import { deadLetter } from '../schema/tables.ts';
import type { Writer } from '../writes/writer.ts';
import { letterKey } from './dead-letters.ts';

/** Maximum letters scanned per page. */
const scannedMax = 1_000;

const letterColumns = `${deadLetter.columnsBut('fleetId', 'payload')}, octet_length(t.payload) AS "payloadBytes"`;
const lettersFrom = (order: LetterOrder): string => {
  const [after, direction] = order === 'oldest' ? ['>', 'ASC'] : ['<', 'DESC'];
  return `
    SELECT ${letterColumns} FROM dead_letter t WHERE fleet_id = $1 AND (mail_id, device) ${after} ($2, $3)
    ORDER BY mail_id ${direction}, device ${direction} LIMIT $4`;
};
const lettersIn: Readonly<Record<LetterOrder, string>> = {
  oldest: lettersFrom('oldest'),
  newest: lettersFrom('newest'),
};
/** Sorts after every mail id. */
const afterIds = Buffer.alloc(17, 0xff);
const letterOf = `
  SELECT ${letterColumns}, payload FROM dead_letter t WHERE fleet_id = $1 AND mail_id = $2 AND device = $3`;

/** The dead letters of a shard on PostgreSQL. */
export class PostgresDeadLetters extends ShardDeadLetters {
  readonly #database: Database;

  constructor(database: Database, writer: Writer) {
    super(writer);
    this.#database = database;
  }

  /** Cursor: mail id and device of a letter in hexadecimal digits, as on LMDB. */
  async list(
    fleetId: string,
    filter: DeadLetterFilter,
    after: string,
    limit: number,
    order: LetterOrder = 'oldest',
  ): Promise<Page<DeadLetter>> {
    const last = Buffer.from(after, 'hex');
    const isFiltered = Object.values(filter).some((value) => value !== undefined);
    const looksMax = isFiltered ? scannedMax : Math.min(limit, scannedMax);
    const mailId = order === 'newest' && after === '' ? afterIds : last.subarray(0, 16);
    const rows = await this.#database.query<DeadLetter>(lettersIn[order], [
      fleetId,
      mailId,
      last.toString('latin1', 16),
      looksMax,
    ]);
    const items: DeadLetter[] = [];
    for (const [index, letter] of deadLetter.read(rows).entries()) {
      if (isWanted(letter, filter)) items.push(letter);
      if (items.length === limit || index + 1 === looksMax) return { items, next: cursorOf(letter) };
    }
    return { items, next: null };
  }

  async get(device: DeviceKey, mailId: Uint8Array): Promise<DeadLetterWithPayload | undefined> {
    const key = deadLetter.keysOf([letterKey(device, mailId)]).flat();
    return deadLetter.read(await this.#database.query<DeadLetterWithPayload & Row>(letterOf, key))[0];
  }
}

function cursorOf({ mailId, device }: DeadLetter): string {
  return mailId.toString('hex') + Buffer.from(device, 'latin1').toString('hex');
}
