import { expect, it } from 'vitest';
import { createLog } from '../../../../src/core/telemetry/log.ts';
import { Database } from '../../../../src/storage/postgres/connection/database.ts';
import { checkVersion, databaseVersion, migrate } from '../../../../src/storage/postgres/schema/migrate.ts';
import { createDatabase } from '../../../harness/postgres/postgres.ts';

it('what must be there as soon as the tables are comes with the last of them, or they do not', async () => {
  const url = await createDatabase();
  const log = createLog('silent');
  const database = new Database({ url, connectionsMax: 1, timeoutMilliseconds: 10_000, log });
  try {
    const dies = (): never => {
      throw new Error('killed');
    };
    await expect(migrate(database, dies)).rejects.toThrow('killed');
    await expect(checkVersion(database)).rejects.toThrow('"fleetpost migrate"');
    const before = await databaseVersion(database);
    expect(
      await migrate(database, (session) => void session.query(`INSERT INTO copy_progress VALUES ('', '')`)),
    ).toEqual([before + 1]);
    await expect(checkVersion(database)).rejects.toThrow('is unfinished');
    // Tables that are there already are nobody's beginning.
    expect(await migrate(database, dies)).toEqual([]);
  } finally {
    await database.close();
  }
});
