import { parseArgs } from 'node:util';
import { faults } from './cluster-faults.ts';
import { ClusterStorm, type Outage } from './cluster-storm.ts';
import type { DatabaseCluster } from './clusters/database-cluster.ts';
import { PatroniCluster } from './clusters/patroni-cluster.ts';
import { PostgresPair } from './clusters/postgres-pair.ts';

/** `npm run storm:postgres`: nodes and databases that break under load, for as long as one likes. */
const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '12' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    workers: { type: 'string', default: '2' },
    databases: { type: 'string', default: '1' },
    'timeout-milliseconds': { type: 'string', default: '5000' },
    /** Failover is patroni's, behind HAProxy; else the storm's own. */
    patroni: { type: 'boolean', default: false },
    /** A partition is a cable that is pulled, for which it must be root; else a relay that stands still. */
    networks: { type: 'boolean', default: false },
    /** One of them by its beginning; else each in its turn. */
    fault: { type: 'string', default: '' },
  },
});
const rounds = positive('rounds');
const seed = positive('seed');
const names = Object.keys(faults).filter((name) => name.startsWith(values.fault));
const clusters: DatabaseCluster[] = [];
for (let index = 0; index < positive('databases'); index += 1) {
  clusters.push(
    values.patroni
      ? await PatroniCluster.start()
      : await PostgresPair.start({ networks: values.networks ? 2 : 0 }),
  );
}
console.log(`${rounds} rounds, seed ${seed}, ${JSON.stringify(values)}`);
const storm = await ClusterStorm.start({
  clusters,
  seed,
  workers: positive('workers'),
  databaseTimeoutMilliseconds: positive('timeout-milliseconds'),
});
const { findings } = storm;
for (let round = 1; round <= rounds; round += 1) {
  await storm.round(names[(round - 1) % names.length]);
  findings.printViolations();
  const last = storm.outages
    .slice(-2)
    .map(({ node, milliseconds }) => `${node} ${Math.round(milliseconds)} ms`);
  console.log(
    `round ${round} of ${rounds}: ${storm.outages.at(-1)?.fault}: out ${last.join(', ')}; ${findings.progress}`,
  );
}
await storm.finish();
findings.printAll();
for (const fault of new Set(storm.outages.map((outage) => outage.fault))) {
  for (const node of storm.nodes) console.log(lengths(fault, node.name, storm.outages));
}
const seen = (pick: 'sentToSeenMs' | 'answeredToSeenMs'): number[] =>
  storm.watches.flatMap((watch) => watch[pick]);
console.log(`announced over another node, from sending: ${spread(seen('sentToSeenMs'))}`);
console.log(`announced over another node, from its answer: ${spread(seen('answeredToSeenMs'))}`);
for (const cluster of clusters) await cluster[Symbol.asyncDispose]();

function lengths(fault: string, node: string, outages: readonly Outage[]): string {
  const own = outages.filter((outage) => outage.fault === fault && outage.node === node);
  return `${fault}, out for node ${node}: ${spread(own.map(({ milliseconds }) => milliseconds))}`;
}

function spread(all: readonly number[]): string {
  const sorted = [...all].sort((a, b) => a - b);
  const at = (share: number): number => Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0);
  return `median ${at(0.5)} ms, 99th ${at(0.99)} ms, max ${at(1)} ms of ${sorted.length}`;
}

function positive(name: 'rounds' | 'seed' | 'workers' | 'databases' | 'timeout-milliseconds'): number {
  const value = Number(values[name]);
  if (Number.isInteger(value) && value > 0) return value;
  console.error(`--${name} takes whole numbers above 0, not ${values[name]}.`);
  process.exit(2);
}
