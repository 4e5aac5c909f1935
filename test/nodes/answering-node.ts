import { pino } from 'pino';
import { RpcServer } from '../../src/nodes/rpc-server.ts';
import { Database } from '../../src/storage/postgres/connection/database.ts';

/** A leader, as a process that can be killed: it says what it was asked, and answers the half of it. */
const [url = ''] = process.argv.slice(2);
const log = pino({ level: 'silent' });
const timeoutMilliseconds = 10_000;
const database = new Database({ url, connectionsMax: 2, timeoutMilliseconds, log });
const methods = new Map([
  [
    'count',
    async ([number]: readonly unknown[]) => {
      process.stdout.write(`${number}\n`);
      if (Number(number) % 2 === 1) await new Promise(() => {});
      return number;
    },
  ],
]);
new RpcServer({ database, log, methods });
process.stdout.write('ready\n');
