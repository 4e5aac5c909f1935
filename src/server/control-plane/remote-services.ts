import type { Settings } from '../../core/config/settings.ts';
import type { ActionDeadLetter, ActionWork } from '../../features/actions/action-work.ts';
import { noLosses } from '../../features/actions/compiler/compiler-child.ts';
import type { BroadcastService } from '../../features/broadcasts/broadcast-service.ts';
import type {
  ConsumerBatch,
  ConsumerFetch,
  ConsumerService,
} from '../../features/consumers/consumer-service.ts';
import type { DeadLetterService } from '../../features/dead-letters/dead-letter-service.ts';
import type { ForwarderDeadLetter, ForwarderWork } from '../../features/forwarders/forwarder-work.ts';
import type { RpcClient } from '../../nodes/rpc-client.ts';
import type { Method } from '../../nodes/rpc-server.ts';

/** The services that the leader provides to all nodes. */
export interface RemoteServices {
  actionWork: ActionWork;
  actionDeadLetters: DeadLetterService<ActionDeadLetter, number>;
  broadcasts: BroadcastService;
  consumers: ConsumerService;
  forwarderWork: ForwarderWork;
  forwarderDeadLetters: DeadLetterService<ForwarderDeadLetter, Buffer>;
}

/** Names of the methods that return a value or a promise, not a stream. */
type MethodName<T> = {
  [K in keyof T]: T[K] extends (...params: never[]) => infer A
    ? A extends AsyncIterable<unknown>
      ? never
      : K
    : never;
}[keyof T];

const letterMethods = { list: true, get: true, replay: true, drop: true } as const;

/**
 * All methods that nodes may call on the leader; a fetch of a consumer is called in its own way. Actions and forwarders
 * are not put, changed or deleted by calls: any node declares them in the shared tables, and the leader follows. The rest
 * stays a call because it reads or writes the leader's own stores: it commits to them at every run, batch and chunk, from
 * the only copy that is current. If others wrote to them too, each of its commits would wait for a lock and a look at
 * what they changed, and every node would hold all runs, letters and payloads in memory.
 */
const remoteMethods = {
  actionWork: {
    // Queues, rates and failures are in its memory; so is what it has followed.
    list: true,
    get: true,
    followed: true,
    // Sandboxes and the type checker run there, in turns with the runs.
    prepare: true,
    test: true,
    check: true,
    // A run that has read what is changed runs again: one transaction with the state.
    listState: true,
    getState: true,
    setState: true,
    deleteState: true,
    runs: true,
    run: true,
    logs: true,
  },
  actionDeadLetters: letterMethods,
  // `pause` and `cancel` are answered once nothing more is sent, `put` within limits that count what runs.
  broadcasts: {
    put: true,
    list: true,
    get: true,
    payload: true,
    refusals: true,
    pause: true,
    resume: true,
    cancel: true,
    delete: true,
  },
  // A declaration is one transaction with the cursors, and of no use without the leader, which lends the batches.
  consumers: {
    list: true,
    get: true,
    put: true,
    change: true,
    delete: true,
    acknowledge: true,
    release: true,
  },
  forwarderWork: {
    list: true,
    get: true,
    hour: true,
    followed: true,
    // From where records are sent, which may reach other hosts than this node does.
    unreachable: true,
    test: true,
  },
  forwarderDeadLetters: letterMethods,
} satisfies {
  [N in keyof RemoteServices]: Record<
    N extends 'consumers' ? Exclude<MethodName<RemoteServices[N]>, 'fetch'> : MethodName<RemoteServices[N]>,
    true
  >;
};

const fetchMethod = 'consumers.fetch';
/** Timeout of a fetch that waits for records; above what the admin API allows. */
const fetchMillisecondsMax = 120_000;

type SentBatch = Omit<ConsumerBatch, 'release'>;

/** Exposes the services of this node as RPC methods. */
export function methodsOf(services: RemoteServices): ReadonlyMap<string, Method> {
  const methods = new Map<string, Method>();
  for (const [name, methodNames] of Object.entries(remoteMethods)) {
    const service = services[name as keyof RemoteServices] as unknown as Record<
      string,
      (...params: unknown[]) => unknown
    >;
    for (const method of Object.keys(methodNames)) {
      methods.set(`${name}.${method}`, async (params) => service[method]?.(...params));
    }
  }
  methods.set(fetchMethod, async (params, signal): Promise<SentBatch | 'paused' | undefined> => {
    const [fleetId, name, fetch] = params as [string, string, ConsumerFetch];
    const batch = await services.consumers.fetch(fleetId, name, fetch, signal);
    if (batch === undefined || batch === 'paused') return batch;
    const { id, shard, records, expiresAtMs } = batch;
    return { id, shard, records, expiresAtMs };
  });
  return methods;
}

/**
 * Creates clients of the leader's services for other nodes. Figures for metrics are empty here: the leader reports them,
 * so that all nodes together report everything once.
 */
export function remoteServices(
  rpcClient: RpcClient,
  settings: Settings<{ requestTimeoutSeconds: number }>,
): RemoteServices {
  const timeout = (): number => settings.current.requestTimeoutSeconds * 1_000;
  const of = <N extends keyof RemoteServices>(name: N): RemoteServices[N] => {
    const methods = Object.keys(remoteMethods[name]).map((method) => [
      method,
      (...params: unknown[]) =>
        rpcClient.call(`${name}.${method}`, params, { timeoutMilliseconds: timeout() }),
    ]);
    // Has every method of the service except those below, as the types of the list ensure.
    return Object.fromEntries(methods) as RemoteServices[N];
  };
  const consumers = of('consumers');
  return {
    actionWork: {
      ...of('actionWork'),
      all: none,
      compilerLosses: noLosses,
    },
    actionDeadLetters: of('actionDeadLetters'),
    broadcasts: {
      ...of('broadcasts'),
      active: 0,
      counts: {
        queued: 0,
        mailbox_full: 0,
        delayed_full: 0,
        fleet_mail_full: 0,
        device_not_found: 0,
        not_stored: 0,
      },
    },
    consumers: {
      ...consumers,
      all: none,
      async fetch(fleetId, name, fetch, signal) {
        const batch = await rpcClient.call(fetchMethod, [fleetId, name, fetch], {
          timeoutMilliseconds: signal.aborted ? timeout() : fetchMillisecondsMax,
          signal,
        });
        if (batch === undefined || batch === 'paused') return batch;
        const sent = batch as SentBatch;
        const release = (): Promise<boolean> =>
          consumers.release(fleetId, name, sent.id).then(
            () => true,
            () => false,
          );
        return { ...sent, release };
      },
    },
    forwarderWork: { ...of('forwarderWork'), all: none },
    forwarderDeadLetters: of('forwarderDeadLetters'),
  };
}

async function* none(): AsyncGenerator<never> {}
