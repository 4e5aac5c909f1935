import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Benchmark } from '../benchmark.ts';
import { interleave, type Lane } from '../interleave.ts';
import { requestText, writeRequests } from '../load/requests.ts';
import { closedLoop, missingWrk } from '../load/wrk.ts';
import { Fleetpost, fleetpost } from '../servers/fleetpost.ts';
import { datapoint, payloadBytes } from './device-requests.ts';

const devices = 1_000;
/** The busier the server, the more datapoints share a batch. */
const connectionCounts = [1, 64, 256];

/** Sums the blocks that files take up on disk, not their lengths: LMDB may leave holes. */
function bytesOnDisk(folder: string): number {
  let bytes = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    // In blocks of 512 bytes, whatever those of the disk are (stat(2)).
    bytes += entry.isDirectory() ? bytesOnDisk(path) : statSync(path).blocks * 512;
  }
  return bytes;
}

export const disk: Benchmark = {
  name: 'disk',
  about:
    'How much the data folder grows for each datapoint that is stored, all it needs included, against its payload.',
  missing: missingWrk,
  async run(options) {
    await using server = await Fleetpost.start({ shards: 1, devices });
    const requests = writeRequests(server.devices.map((device) => requestText(device, datapoint.request)));
    const lanes = connectionCounts.map((connections): Lane => {
      const { status } = datapoint;
      return {
        workload: 'datapoint',
        subject: fleetpost.name,
        conditions: { shards: 1, connections, devices, payloadBytes },
        async measure() {
          const storedBefore = await stored(server);
          const bytesBefore = bytesOnDisk(server.data);
          await closedLoop(server, { requests, status, connections, seconds: options.seconds });
          const bytes = bytesOnDisk(server.data) - bytesBefore;
          return { bytesPerRecord: bytes / ((await stored(server)) - storedBefore) };
        },
      };
    });
    // The first pages of every table are there before anything is counted.
    await lanes[0]?.measure();
    // Awaited here, or the server would be gone.
    return await interleave(lanes, options);
  },
};

async function stored(server: Fleetpost): Promise<number> {
  return (await server.answersByStatus()).get(datapoint.status) ?? 0;
}
