import type { ActionService } from '../../features/actions/service.ts';
import type { BroadcastService } from '../../features/broadcasts/service.ts';
import type { ConsumerBatch, ConsumerFetch, ConsumerService } from '../../features/consumers/service.ts';
import type { ForwarderService } from '../../features/forwarders/service.ts';
import type { RpcClient } from '../../nodes/rpc-client.ts';
import type { Method } from '../../nodes/rpc-server.ts';

/** What the node that has the jobs does for all. */
export interface RemoteServices {
  actions: ActionService;
  broadcasts: BroadcastService;
  consumers: ConsumerService;
  forwarders: ForwarderService;
}

/** Names of what takes values and answers one, later or at once. */
type Asked<T> = {
  [K in keyof T]: T[K] extends (...given: never[]) => infer A
    ? A extends AsyncIterable<unknown>
      ? never
      : K
    : never;
}[keyof T];

/** All that nodes may ask of each other. A fetch of a consumer is asked in a way of its own. */
const asked = {
  actions: {
    list: true,
    get: true,
    version: true,
    put: true,
    change: true,
    rollback: true,
    delete: true,
    test: true,
    runs: true,
    logs: true,
    parked: true,
    parkedRun: true,
    retry: true,
    drop: true,
  },
  broadcasts: {
    put: true,
    list: true,
    get: true,
    refusals: true,
    pause: true,
    resume: true,
    cancel: true,
    delete: true,
  },
  consumers: { list: true, get: true, put: true, delete: true, acknowledge: true, release: true },
  forwarders: {
    list: true,
    get: true,
    put: true,
    change: true,
    delete: true,
    rotateSecret: true,
    deadLetters: true,
    deadLetter: true,
    replay: true,
    drop: true,
  },
} satisfies {
  [N in keyof RemoteServices]: Record<
    N extends 'consumers' ? Exclude<Asked<RemoteServices[N]>, 'fetch'> : Asked<RemoteServices[N]>,
    true
  >;
};

const fetchMethod = 'consumers.fetch';
/** How long a fetch may wait for records: the admin API lets it wait for less. */
const fetchMillisecondsMax = 120_000;

type SentBatch = Omit<ConsumerBatch, 'release'>;

/** The controls of this node, for others to ask. */
export function methodsOf(controls: RemoteServices): ReadonlyMap<string, Method> {
  const methods = new Map<string, Method>();
  for (const [name, ofControl] of Object.entries(asked)) {
    const control = controls[name as keyof RemoteServices] as unknown as Record<
      string,
      (...given: unknown[]) => unknown
    >;
    for (const method of Object.keys(ofControl)) {
      methods.set(`${name}.${method}`, async (given) => control[method]?.(...given));
    }
  }
  methods.set(fetchMethod, async (given, signal): Promise<SentBatch | undefined> => {
    const [fleetId, name, fetch] = given as [string, string, ConsumerFetch];
    const batch = await controls.consumers.fetch(fleetId, name, fetch, signal);
    if (batch === undefined) return undefined;
    const { id, shard, records, expiresAtMs } = batch;
    return { id, shard, records, expiresAtMs };
  });
  return methods;
}

/**
 * The controls of the node that has the jobs, for one that has not. What is only told, not asked for, is nothing
 * here: that node tells it, and all nodes together tell everything once.
 */
export function remoteServices(caller: RpcClient, timeoutMilliseconds: number): RemoteServices {
  const of = <N extends keyof RemoteServices>(name: N): RemoteServices[N] => {
    const methods = Object.keys(asked[name]).map((method) => [
      method,
      (...given: unknown[]) => caller.call(`${name}.${method}`, given, { timeoutMilliseconds }),
    ]);
    // By the list above, and its types, each method but those below.
    return Object.fromEntries(methods) as RemoteServices[N];
  };
  const consumers = of('consumers');
  return {
    actions: { ...of('actions'), all: none },
    broadcasts: {
      ...of('broadcasts'),
      active: 0,
      counts: { queued: 0, mailbox_full: 0, delayed_full: 0, device_not_found: 0, not_stored: 0 },
    },
    consumers: {
      ...consumers,
      all: none,
      async fetch(fleetId, name, fetch, signal) {
        const batch = await caller.call(fetchMethod, [fleetId, name, fetch], {
          timeoutMilliseconds: signal.aborted ? timeoutMilliseconds : fetchMillisecondsMax,
          signal,
        });
        if (batch === undefined) return undefined;
        const sent = batch as SentBatch;
        const release = (): Promise<boolean> =>
          consumers.release(fleetId, name, sent.id).then(
            () => true,
            () => false,
          );
        return { ...sent, release };
      },
    },
    forwarders: { ...of('forwarders'), all: none },
  };
}

async function* none(): AsyncGenerator<never> {}
