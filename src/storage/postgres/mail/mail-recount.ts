import type { Log } from '../../../core/telemetry/log.ts';
import type { Database, Session } from '../connection/database.ts';
import { databaseTimeMs } from '../connection/database-time.ts';
import { addMailBytes, bytesOfRow } from './mail-bytes.ts';

/**
 * How often mail is counted again: what a node of the version before has sent and ended meanwhile, beside newer ones,
 * is in no count.
 */
const intervalMs = 3_600_000;
/** Rows that one statement looks at, so that none meets its timeout. */
const rowsPerStep = 20_000;

const snapshot = 'SET TRANSACTION ISOLATION LEVEL REPEATABLE READ';
const counts = 'SELECT fleet_id, bytes FROM mail_bytes';
const lastCount = `SELECT number FROM value WHERE name = 'mail counted'`;
/** Says nothing if another node has counted meanwhile. */
const noteCount = `
  INSERT INTO value AS t (name, number) VALUES ('mail counted', $1)
  ON CONFLICT (name) DO UPDATE SET number = excluded.number WHERE t.number = $2
  RETURNING name`;

interface Step {
  fleet_id: string;
  bytes: number;
  device: string;
  /** Of the last row of the step. */
  last: unknown;
}

/** Sums up the rows behind one, by fleet, in the order of the primary key. */
function stepOf(table: string, column: string, type: string): string {
  return `
  WITH step AS (
    SELECT device, ${column} AS key, ${bytesOfRow} AS bytes FROM ${table}
    WHERE (device, ${column}) > ($1::text, $2::${type}) ORDER BY device, ${column} LIMIT ${rowsPerStep}
  ), last AS (SELECT device, key FROM step ORDER BY device DESC, key DESC LIMIT 1)
  SELECT left(device, 8) AS fleet_id, sum(bytes)::bigint AS bytes, (SELECT device FROM last) AS device,
    (SELECT key FROM last) AS last
  FROM step GROUP BY 1`;
}

const walks = [
  { text: stepOf('mail', 'sequence', 'bigint'), front: 0 as unknown },
  { text: stepOf('delayed_mail', 'mail_id', 'bytea'), front: Buffer.alloc(0) },
];

/**
 * Counts the mail of a database that was never counted, or not for an hour, and adds what the counts are short of. Both
 * are read in one snapshot, so that whatever is written meanwhile counts once.
 */
export async function countMailAgain(database: Database, log: Log): Promise<void> {
  const nowMs = await databaseTimeMs(database);
  const [row] = await database.query<{ number: number }>(lastCount);
  if (row !== undefined && nowMs - row.number < intervalMs) return;
  const missing = await missingBytes(database);
  await database.transaction(async (transaction) => {
    const noted = await transaction.query(noteCount, [nowMs, row?.number ?? -1]);
    if (noted.length > 0) addMailBytes(transaction, missing);
    await transaction.commit();
  });
  if (row !== undefined && missing.size > 0) {
    log.warn({ fleets: missing.size }, 'bytes of waiting mail differed from its count; corrected');
  }
}

/** What the counts of fleets are short of, or below 0 too much of. */
function missingBytes(database: Database): Promise<Map<string, number>> {
  return database.transaction(async (transaction) => {
    transaction.query(snapshot);
    const missing = new Map<string, number>();
    const add = (fleetId: string, bytes: number): unknown =>
      missing.set(fleetId, (missing.get(fleetId) ?? 0) + bytes);
    for (const { fleet_id, bytes } of await transaction.query<{ fleet_id: string; bytes: number }>(counts)) {
      add(fleet_id, -bytes);
    }
    for (const walk of walks) await sumUp(transaction, walk, add);
    await transaction.commit();
    return new Map([...missing].filter(([, bytes]) => bytes !== 0));
  });
}

async function sumUp(
  session: Session,
  { text, front }: (typeof walks)[number],
  add: (fleetId: string, bytes: number) => void,
): Promise<void> {
  let [device, last] = ['', front];
  for (;;) {
    const steps = await session.query<Step & Record<string, unknown>>(text, [device, last]);
    const [first] = steps;
    if (first === undefined) return;
    for (const { fleet_id, bytes } of steps) add(fleet_id, bytes);
    ({ device, last } = first);
  }
}
