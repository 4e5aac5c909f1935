import { pino } from 'pino';
import { PostgresAudit } from '../../../src/features/audit/postgres-audit.ts';
import { Database } from '../../../src/storage/postgres/connection/database.ts';
import { configWith } from '../../harness/server/config.ts';
import { eventOf } from './audit-event.ts';

/** A node that does one change after another, as a process that can be killed, and says how far it has come. */
const [url = ''] = process.argv.slice(2);
const log = pino({ level: 'silent' });
const database = new Database({ url, connectionsMax: 2, timeoutMilliseconds: 10_000, log });
const audit = new PostgresAudit(database, configWith(), log);

async function change(line: number): Promise<void> {
  for (let step = 0; ; step += 1) {
    const begun = await audit.begin('change', eventOf({ line, step }));
    process.stdout.write(`begun ${begun.entry.number}\n`);
    await audit.end(begun, { status: 200, error: null, about: { done: 1 } });
    process.stdout.write(`ended ${begun.entry.number}\n`);
  }
}

await Promise.all([1, 2, 3, 4].map(change));
