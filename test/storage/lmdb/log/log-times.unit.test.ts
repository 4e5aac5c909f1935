import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, expect, it } from 'vitest';
import { correctionMsMax } from '../../../../src/core/clock.ts';
import type { DeviceKey } from '../../../../src/core/identity.ts';
import { sequenceKey } from '../../../../src/storage/lmdb/layout/keys.ts';
import { openTables } from '../../../../src/storage/lmdb/layout/tables.ts';
import { IngestLog } from '../../../../src/storage/lmdb/log/ingest-log.ts';
import { encodeLogRecord } from '../../../../src/storage/lmdb/log/log-record.ts';
import { positionAt, timeAt } from '../../../../src/storage/lmdb/log/log-times.ts';
import { openEnvironment } from '../../../harness/storage/environment.ts';

const folder = mkdtempSync(join(tmpdir(), 'fleetpost-test-'));
const environment = openEnvironment(folder);
afterAll(async () => {
  await environment.close();
  rmSync(folder, { recursive: true });
});

const device = 'FLEET001DEVICE0001' as DeviceKey;
let beganMs = 1_700_000_000_000;
/** Longer than a run: ids are made in order of time, so that no run may begin before the end of another. */
const runMs = 1_000_000;
const record = encodeLogRecord({ device, kind: 'message', schema: 'note', payload: Buffer.from('{}') });
/** One batch: how long after the one before, how many records, whether it is damaged later. */
const batch = fc.record({
  afterMs: fc.integer({ min: 1, max: 20_000 }),
  records: fc.integer({ min: 1, max: 5 }),
  isDamaged: fc.boolean(),
});

it('a time is found in the log: nothing that was stored then is left out, and no batch in front of it is read', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(batch, { maxLength: 30 }),
      fc.nat({ max: 400_000 }),
      async (batches, sought) => {
        beganMs += runMs;
        const tables = openTables(environment);
        const atMs = beganMs + sought;
        const written: { position: number; end: number; timeMs: number; isDamaged: boolean }[] = [];
        await environment.write(() => {
          for (const key of [...tables.log.getKeys({})]) tables.log.removeSync(key);
          let timeMs = beganMs;
          let position = 0;
          const log = new IngestLog(tables.log, () => timeMs);
          for (const { afterMs, records, isDamaged } of batches) {
            timeMs += afterMs;
            for (let index = 0; index < records; index += 1) log.append(record);
            log.flush();
            if (isDamaged) tables.log.putSync(sequenceKey(position), Buffer.from('damaged'));
            written.push({ position, end: position + records, timeMs, isDamaged });
            position += records;
          }
        });
        environment.refresh();
        const from = positionAt(tables, atMs);
        const sound = written.filter(({ isDamaged }) => !isDamaged);
        for (const { position, timeMs } of sound) {
          // A correction of the clock is allowed for.
          if (timeMs >= atMs - correctionMsMax) expect(position).toBeGreaterThanOrEqual(from);
          expect(timeAt(tables, position)).toBe(timeMs);
        }
        const before = sound.filter(({ timeMs }) => timeMs < atMs - correctionMsMax);
        expect(from).toBeGreaterThanOrEqual(before.at(-1)?.end ?? 0);
      },
    ),
    { numRuns: 100 },
  );
});
