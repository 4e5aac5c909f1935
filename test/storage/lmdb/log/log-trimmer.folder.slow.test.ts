import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { verifyFolder } from '../../../../src/maintenance/verify.ts';
import { createFleet, type TestFleet } from '../../../harness/devices/device.ts';
import { SmallDisk } from '../../../harness/machine/small-disk.ts';
import { engine, shards, TestServer, temporaryFolder } from '../../../harness/server/server.ts';
import { readRecords } from '../../../harness/storage/log.ts';

const data = temporaryFolder();
afterAll(() => rmSync(data, { recursive: true, force: true }));

const bytesMax = 65_536;
const rounds = 6;
const quiet = { start: () => {}, onRecord: () => {} };

/** Sends from devices of all shards at once, so that commits hold records of several fleets. */
async function fill(fleets: readonly TestFleet[], roundsCount: number): Promise<void> {
  const devices = await Promise.all(
    fleets.flatMap((fleet) => Array.from({ length: 6 }, () => fleet.createDevice())),
  );
  for (let round = 0; round < roundsCount; round += 1) {
    const payload = JSON.stringify({ round, filling: 'x'.repeat(16_000) });
    const answers = await Promise.all(
      devices.map((device) => device.request('POST', '/v1/datapoint/reading', payload)),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
  }
}

/** Bytes of the payloads in the log, as the server tells: nobody else may open the files of one that runs. */
async function payloadBytes({ report, token }: TestServer, { fleetId }: TestFleet): Promise<number> {
  const url = `${report.admin_url}/admin/v1/fleets/${fleetId}/records`;
  const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
  expect(response.status).toBe(200);
  const lines = (await response.text()).split('\n').filter((line) => line !== '');
  return lines.reduce((sum, line) => sum + JSON.stringify(JSON.parse(line).payload).length, 0);
}

it('a fleet keeps the newest of its records that its bytes have room for, others keep theirs', async () => {
  const first = await TestServer.start({}, data);
  const limited = await createFleet(first, { log_bytes_max: bytesMax });
  const other = await createFleet(first);
  const path = `/fleets/${limited.fleetId}`;
  expect((await first.admin('GET', path)).body).toMatchObject({
    log_bytes_max: bytesMax,
    log_retention_seconds: 2_592_000,
  });
  for (const wrong of [{ log_bytes_max: 10 }, { log_retention_seconds: 1 }]) {
    expect((await first.admin('PATCH', path, wrong)).body).toMatchObject({ error: 'invalid_body' });
  }
  await fill([limited, other], rounds);
  const before = await readRecords(first.report);
  await first.stop();

  // A pass over the log comes a second after a start, then every minute. In the first one each shard finds out
  // what it has, and only in the next one what they have together.
  const second = await TestServer.start({}, data);
  const bytesOf = (): Promise<number> => payloadBytes(second, limited);
  await expect.poll(bytesOf, { timeout: 60_000, interval: 1_000 }).toBeLessThan(shards * bytesMax);
  expect(await bytesOf()).toBeGreaterThan(bytesMax / 2);
  expect((await second.admin('PATCH', path, { log_bytes_max: null })).body).toMatchObject({
    log_bytes_max: null,
  });
  expect([await second.stop(), second.stderr]).toEqual([0, '']);

  const after = await readRecords(second.report);
  const ofOther = ({ fleetId }: { fleetId: string }): boolean => fleetId === other.fleetId;
  expect(after.filter(ofOther)).toEqual(before.filter(ofOther));
  // The newest records of each device are left, whichever shard it is in.
  const roundsOf = (deviceId: string): number[] =>
    after.filter((record) => record.deviceId === deviceId).map(({ payload }) => JSON.parse(payload).round);
  for (const { deviceId } of after.filter((record) => !ofOther(record))) {
    const kept = roundsOf(deviceId);
    expect(kept).toEqual(Array.from(kept, (_, index) => rounds - kept.length + index));
  }
  if (engine === 'lmdb') expect((await verifyFolder(data, quiet)).findings.sentences).toEqual([]);
});

it.runIf(engine === 'lmdb')(
  'without a word on logBytesMax the log takes half of its disk, and says so',
  async () => {
    using disk = new SmallDisk(48);
    const folder = join(disk.path, 'data');
    const config = { diskFreeBytesMin: 1_048_576, logLevel: 'info' as const };
    const first = await TestServer.start({ ...config, deviceBytesPerSecondMax: 0 }, folder);
    const fleet = await createFleet(first);
    const roundsCount = Math.ceil((34 * 1_048_576) / (6 * 16_000));
    await fill([fleet], roundsCount);
    const before = (await readRecords(first.report)).length;
    await first.stop();

    const second = await TestServer.start(config, folder);
    const line = second.stderr.split('\n').find((one) => one.includes('half of the available disk')) ?? '';
    const { bytes } = JSON.parse(line) as { bytes: number };
    expect(bytes / 1_048_576).toBeGreaterThan(20);
    expect(bytes / 1_048_576).toBeLessThanOrEqual(24);
    const bytesOf = (): Promise<number> => payloadBytes(second, fleet);
    await expect.poll(bytesOf, { timeout: 60_000, interval: 1_000 }).toBeLessThan(bytes);
    expect(second.stderr).toContain('log full; removing the oldest records early (logBytesMax)');
    expect(await second.stop()).toBe(0);
    const after = await readRecords(second.report);
    expect(after.length).toBeGreaterThan(before / 3);
    const newest = new Map(after.map(({ deviceId, payload }) => [deviceId, JSON.parse(payload).round]));
    expect([...newest.values()]).toEqual(Array(6).fill(roundsCount - 1));
    expect((await verifyFolder(folder, quiet)).findings.sentences).toEqual([]);
  },
);
