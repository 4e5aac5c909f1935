import type { afterAll, afterEach } from 'vitest';
import type { Config } from '../../../src/server/configuration/config.ts';
import { type TestDevice, TestFleet } from '../devices/device.ts';
import { queryDatabase } from '../storage/log.ts';
import { createStore, TestServer } from './server.ts';

/** Two nodes on one store, of which the first is the leader. */
export interface Nodes {
  first: TestServer;
  second: TestServer;
  /** URLs of the databases. */
  urls: readonly string[];
}

/** Limit of open event streams of a device, on whatever nodes. */
export const streamsPerDeviceMax = 3;
/** Records of an action that are taken from the logs at once. */
export const actionQueueMax = 10;
const config: Partial<Config> = {
  claiming: true,
  actionQueueMax,
  streamsPerDeviceMax,
  forwardHosts: 'localhost',
  forwardRetryMilliseconds: 20,
  actionRetryMilliseconds: 20,
  broadcastMailsPerSecondMax: 100,
};

/** Starts nodes that end after each test, or after all: those of tests that are over would compute beside the next. */
export function useNodes(
  after: typeof afterEach | typeof afterAll,
): (databasesCount?: number) => Promise<Nodes> {
  const started: TestServer[] = [];
  after(async () => {
    for (const server of started.splice(0)) await server[Symbol.asyncDispose]();
  });
  return async (databasesCount = 1) => {
    const store = await createStore(databasesCount);
    const start = async (): Promise<TestServer> => {
      const server = await TestServer.start({ ...config, store });
      started.push(server);
      return server;
    };
    // One after the other: the first one becomes the leader.
    return { first: await start(), second: await start(), urls: store.shards };
  };
}

/** The same fleet towards another node. */
export const at = (server: TestServer, { fleetId }: TestFleet): TestFleet => new TestFleet(server, fleetId);

/** The leader, as the first database knows it. */
export async function holderOfJobs([url = '']: readonly string[]): Promise<string | undefined> {
  const rows = await queryDatabase<{ holder: string }>(url, "SELECT holder FROM lease WHERE name = 'jobs'");
  return rows[0]?.holder;
}

export const numbersFrom0 = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

/** The numbers that its mails carry, in their order. */
export async function numbers(device: TestDevice): Promise<number[]> {
  return (await device.mails()).map(({ payload }) => payload.n as number);
}

/** An action that passes the number of a message on, to the device that it names. */
export const relay = `export default async (record, fleet) => {
  await fleet.send(record.payload.to, 'relayed', { n: record.payload.n });
}`;
