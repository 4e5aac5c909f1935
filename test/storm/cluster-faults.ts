import { sleep } from '../../src/core/async.ts';
import type { DatabaseCluster } from './clusters/database-cluster.ts';
import type { Random } from './random.ts';
import type { StormNode } from './storm-node.ts';

/** Parts that can be broken. */
export interface Ground {
  clusters: readonly DatabaseCluster[];
  nodes: readonly StormNode[];
  random: Random;
}

/** So long something stands still, or is cut off. */
const stillMs = 10_000;

function one<T>(list: readonly T[], random: Random): T {
  const picked = random.pick(list);
  if (picked === undefined) throw new Error('there is nothing to break');
  return picked;
}

/** Each settles when the fault is over, but for what the others make of it. */
export const faults: Record<string, (ground: Ground) => Promise<void>> = {
  'kill -9 of the primary, the standby takes over': async ({ clusters, random }) => {
    await one(clusters, random).failOver();
  },

  'kill -9 of the primary, which comes back': async ({ clusters, random }) => {
    await one(clusters, random).crashPrimary();
  },

  // Commits wait for it then: what nobody was answered may be lost, and nothing else.
  'freeze of the standby, then kill -9 of the primary': async ({ clusters, random }) => {
    const cluster = one(clusters, random);
    await cluster.freezeStandby();
    await sleep(random.integer(500, 8_000));
    await cluster.failOver();
  },

  'freeze of the primary for 10 s': async ({ clusters, random }) => {
    const cluster = one(clusters, random);
    await cluster.freezePrimary();
    await sleep(stillMs);
    cluster.thaw();
  },

  'kill -9 of a node': async ({ nodes, random }) => {
    const node = one(nodes, random);
    await node.kill();
    await sleep(random.integer(0, 2_000));
    await node.start();
  },

  'a node cut off from the databases for 10 s': async ({ nodes, random }) => {
    const node = one(nodes, random);
    node.cut();
    await sleep(stillMs);
    node.mend();
  },
};
