import { rmSync } from 'node:fs';
import { afterAll, expect, it } from 'vitest';
import { verifyFolder } from '../../src/cluster/verify.ts';
import { createFleet, type TestFleet } from '../harness/device.ts';
import { eachShard, readRecords } from '../harness/log.ts';
import { shards, TestServer, temporaryFolder } from '../harness/server.ts';

const data = temporaryFolder();
afterAll(() => rmSync(data, { recursive: true, force: true }));

const bytesMax = 65_536;
const quiet = { start: () => {}, onRecord: () => {} };

/** From devices of all shards at once, so that commits hold records of several fleets. */
async function fill(fleets: readonly TestFleet[], roundsCount: number): Promise<void> {
  const devices = await Promise.all(
    fleets.flatMap((fleet) => Array.from({ length: 6 }, () => fleet.createDevice())),
  );
  for (let round = 0; round < roundsCount; round += 1) {
    const payload = JSON.stringify({ round, filling: 'x'.repeat(4_000) });
    const answers = await Promise.all(
      devices.map((device) => device.request('POST', '/v1/datapoint/reading', payload)),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
  }
}

it('a fleet keeps the newest of its records that its bytes have room for over all shards, others keep theirs', async () => {
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
  await fill([limited, other], 8);
  const before = await readRecords(first.report);
  await first.stop();

  // A pass over the log comes a second after a start, then every minute. In the first one each shard finds out
  // what it has, in the next one what they have together.
  const counting = await TestServer.start({}, data);
  const shardsCounted = async (): Promise<number> => {
    let counted = 0;
    await eachShard(counting.report, (environment) => {
      counted += Number(environment.table('times').doesExist(Buffer.from('trim')));
    });
    return counted;
  };
  await expect.poll(shardsCounted, { timeout: 30_000, interval: 250 }).toBe(shards);
  expect([await counting.stop(), counting.stderr]).toEqual([0, '']);
  const second = await TestServer.start({}, data);
  const bytesOf = async (): Promise<number> => {
    const records = await readRecords(second.report);
    const own = records.filter(({ fleetId }) => fleetId === limited.fleetId);
    return own.reduce((sum, { payload }) => sum + payload.length, 0);
  };
  await expect.poll(bytesOf, { timeout: 30_000, interval: 250 }).toBeLessThan(bytesMax);
  expect(await bytesOf()).toBeGreaterThan(bytesMax / 2);
  expect((await second.admin('PATCH', path, { log_bytes_max: null })).body).toMatchObject({
    log_bytes_max: null,
  });
  expect([await second.stop(), second.stderr]).toEqual([0, '']);

  const after = await readRecords(second.report);
  const ofOther = ({ fleetId }: { fleetId: string }): boolean => fleetId === other.fleetId;
  expect(after.filter(ofOther)).toEqual(before.filter(ofOther));
  // Of each device the newest are left, whichever shard it is in.
  const roundsOf = (deviceId: string): number[] =>
    after.filter((record) => record.deviceId === deviceId).map(({ payload }) => JSON.parse(payload).round);
  for (const { deviceId } of after.filter((record) => !ofOther(record))) {
    const rounds = roundsOf(deviceId);
    expect(rounds).toEqual(Array.from(rounds, (_, index) => 8 - rounds.length + index));
  }
  expect((await verifyFolder(data, quiet)).findings.sentences).toEqual([]);
});
