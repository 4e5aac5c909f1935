import { once } from 'node:events';
import { holdSnapshot } from '../../../../src/storage/lmdb/environment/copy-environment.ts';
import { Environment } from '../../../../src/storage/lmdb/environment/environment.ts';

/** A process that commits all the time, and holds snapshots for another that copies: as a server does. */
export interface Committed {
  commits: number;
  /** Commits that the next one did not find. */
  lost: number;
}

/** Requests to this process, which answers `held` to `hold`, and `Committed` to `stop`. */
export type CommittingRequest = 'hold' | 'release' | 'stop';

const batch = 24;
const keys = 1_000;
const valueBytesMin = 200;
const valueBytesMax = 6_000;
const filling = Buffer.alloc(valueBytesMax, 7);
const last = Buffer.from('last');

const path = String(process.argv[2]);
const environment = new Environment({
  path,
  tables: ['values'],
  mapBytesMax: 2 ** 31,
  readersMax: 8,
  commits: new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)),
  // More commits in the time that the test has; what they write is the same.
  unsynced: true,
});
const values = environment.table('values');
const committed: Committed = { commits: 0, lost: 0 };
let isStopping = false;
let release: (() => Promise<void>) | undefined;

function commit(): Promise<void> {
  return environment.write(() => {
    const found = values.getBinary(last)?.readUInt32BE() ?? 0;
    if (found !== committed.commits) committed.lost += 1;
    const next = Buffer.alloc(4);
    next.writeUInt32BE(committed.commits + 1);
    values.putSync(last, next);
    for (let change = 0; change < batch; change += 1) {
      const key = Buffer.from(`key ${Math.floor(Math.random() * keys)}`);
      const bytes = valueBytesMin + Math.floor(Math.random() * (valueBytesMax - valueBytesMin));
      if (Math.random() < 0.3) values.removeSync(key);
      else values.putSync(key, filling.subarray(0, bytes));
    }
  });
}

process.on('message', async (request: CommittingRequest) => {
  if (request === 'stop') isStopping = true;
  if (request === 'hold') {
    release = holdSnapshot(path);
    process.send?.('held');
  }
  if (request === 'release') await release?.();
});
// The test has ended without a word.
process.once('disconnect', () => process.exit(1));

process.send?.('committing');
while (!isStopping) {
  await commit();
  committed.commits += 1;
}
await environment.close();
process.send?.(committed);
await once(process, 'disconnect');
