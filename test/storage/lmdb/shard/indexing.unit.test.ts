/** The owner of a shard keeps the index of its log (log-index.ts). */

import { expect, it } from 'vitest';
import { type DeviceKey, deviceKeyOf } from '../../../../src/core/identity.ts';
import { segmentPositions } from '../../../../src/storage/lmdb/log/log-index.ts';
import { temporaryFolder } from '../../../harness/machine/temporary-folder.ts';
import { openEnvironment } from '../../../harness/storage/environment.ts';
import { type OpenShard, openShard } from '../../../harness/storage/shard.ts';

const device = deviceKeyOf('FLEET001', 'DEVICE0001');
const other = deviceKeyOf('FLEET001', 'DEVICE0002');

async function append({ shard }: OpenShard, count: number): Promise<void> {
  const send = (of: DeviceKey) =>
    shard.log.append({ device: of, kind: 'datapoint', schema: 'reading', payload: Buffer.from('{}') });
  for (let n = 0; n < count; n += 1_000) {
    await Promise.all(Array.from({ length: 1_000 }, (_, index) => send(index === 500 ? device : other)));
  }
}

async function ownRecords({ shard }: OpenShard): Promise<number> {
  let count = 0;
  const end = await shard.log.end();
  for (let from = 0; from < end; ) {
    const span = { from, to: end, isNewestFirst: false, recordsMax: 100 };
    const { records, next } = await shard.log.ofDevice(device, span);
    count += records.length;
    from = next;
  }
  return count;
}

it('the log is indexed behind the commits, goes on being so after a restart, and an idle shard commits nothing', async () => {
  const folder = temporaryFolder();
  const opened = openShard(folder);
  const records = ({ environment }: OpenShard): number => {
    environment.refresh();
    return environment.sizeOf('logIndex').records;
  };
  const thousands = Math.ceil(segmentPositions / 1_000);
  await append(opened, thousands * 1_000);
  await expect.poll(() => records(opened)).toBe(1);
  expect(await ownRecords(opened)).toBe(thousands);
  await opened.close();
  const again = openShard(folder);
  await append(again, thousands * 1_000);
  await expect.poll(() => records(again)).toBe(2);
  expect(await ownRecords(again)).toBe(2 * thousands);
  const before = again.commits();
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(again.commits()).toBe(before);
  await again.close();
});

it('the log of a folder from before the index gets one', async () => {
  const folder = temporaryFolder();
  const filled = openShard(folder, { sweepMilliseconds: 60_000 });
  await append(filled, 40_000);
  await filled.close();
  const older = openEnvironment(folder);
  expect(older.sizeOf('log').records).toBeGreaterThan(0);
  older.table('logIndex').dropSync();
  await older.close();
  const opened = openShard(folder);
  await expect.poll(() => opened.environment.sizeOf('logIndex').records).toBe(2);
  expect(await ownRecords(opened)).toBe(40);
  await opened.close();
});
