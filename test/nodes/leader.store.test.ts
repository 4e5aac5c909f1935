import { expect, it } from 'vitest';
import { createLog } from '../../src/core/telemetry/log.ts';
import { Leader } from '../../src/nodes/leader.ts';
import { Database } from '../../src/storage/postgres/connection/database.ts';
import { createMigrated } from '../harness/postgres/postgres.ts';

it('a leader that cannot start stops at once, not after its pause before the next attempt', async () => {
  const log = createLog('silent');
  const url = await createMigrated();
  const database = new Database({ url, connectionsMax: 2, timeoutMilliseconds: 10_000, log });
  let begun: () => void;
  const attempted = new Promise<void>((resolve) => {
    begun = resolve;
  });
  const leader = new Leader({
    database,
    holder: 'one',
    async open() {
      begun();
      throw new Error('not now');
    },
    close: async () => {},
    log,
  });
  void leader.start();
  await attempted;
  const beganMs = performance.now();
  await leader.stop();
  expect(performance.now() - beganMs).toBeLessThan(4_000);
  await database.close();
});
