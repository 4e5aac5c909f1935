import { ApiError } from '../core/errors.ts';
import type { Completion } from '../domain/write.ts';
import type { Environment } from '../storage/lmdb/environment/environment.ts';
import { openTables } from '../storage/lmdb/layout/tables.ts';
import { storedLogBytes } from '../storage/lmdb/log/log-trim-state.ts';
import { readMailBytes } from '../storage/lmdb/mail/mail-bytes.ts';
import { ShardOwner } from '../storage/lmdb/shard/owner.ts';
import type { ShardWriter } from '../storage/lmdb/shard/write-queue.ts';
import { mailBytesMaxOf, onceASecond, retentionOf, sumOfBytes } from './fleet-limits.ts';
import { LmdbShards, openShardEnvironment } from './lmdb-shards.ts';
import { Channel } from './relay/channel.ts';
import type { Call, Notice } from './relay/messages.ts';
import { RemoteShardWriter } from './relay/remote-shard-writer.ts';
import { RemoteStreams } from './relay/remote-streams.ts';
import { WriteRelay } from './relay/write-relay.ts';
import { counterCellOf, versionsOf } from './shared-counters.ts';
import type { WorkerShards, WorkerShardsOptions } from './worker-shards.ts';

/**
 * LMDB: this worker owns the shard of its number, reads the other shards in place, and sends writes for them to their
 * owners through shared memory.
 */
export function openWorkerLmdbShards(options: WorkerShardsOptions): WorkerShards {
  const { start, config } = options;
  const { counters, index, shardFolders } = start;
  const environments = shardFolders.map((path, shard) =>
    openShardEnvironment(path, shard, shardFolders.length, config, counters, options.log),
  );
  const depth = counterCellOf(counters.depths, index);
  const owner = openOwner(environments, options, () => relay.drain());
  const relay = new WriteRelay({
    index,
    workers: shardFolders.length,
    memory: counters.writeRelay,
    commitDelayMilliseconds: config.commitDelayMilliseconds,
    depth,
    onWrite: (write, completion) => owner.write(write, completion),
  });
  const remoteStreams = new Map<Channel, RemoteStreams>();
  const remoteOwners = new Map<Channel, RemoteShardWriter>();

  function serve(call: Call, completion: Completion<unknown>, channel: Channel): void {
    if (call.type === 'write') owner.write(call.write, completion);
    else answer(call, owner, remoteStreams.get(channel)).then(completion.resolve, completion.reject);
  }

  function notice(received: Notice, channel: Channel): void {
    switch (received.type) {
      case 'wake':
        relay.poll();
        break;
      case 'answered':
        relay.complete(received.call, received.answer);
        break;
      case 'refused':
        relay.complete(received.call, new ApiError(received.code, received.options));
        break;
      case 'unsubscribe':
        remoteStreams.get(channel)?.unsubscribe(received.stream);
        break;
      default:
        remoteOwners.get(channel)?.receive(received);
    }
  }

  const owners = start.peerPorts.map((port, peer): ShardWriter => {
    if (port === undefined) return owner;
    const channel = new Channel(port, serve, notice);
    relay.connect(peer, channel);
    const remote = new RemoteShardWriter(channel, (write, completion) => relay.send(peer, write, completion));
    remoteOwners.set(channel, remote);
    remoteStreams.set(channel, new RemoteStreams(owner, channel));
    return remote;
  });
  const shards = new LmdbShards(environments, owners, config, counters);
  return {
    shards,
    serve,
    notice,
    async close() {
      relay.close();
      await owner.close();
      await shards.close();
      // Lets the answers to other threads leave first.
      setImmediate(() => {
        for (const channel of remoteOwners.keys()) channel.close();
      });
    },
  };
}

async function answer(
  call: Call,
  { presence }: ShardOwner,
  streams: RemoteStreams | undefined,
): Promise<unknown> {
  if (call.type === 'subscribe') return streams?.subscribe(call.stream, call.device, call.waits);
  if (call.type !== 'presence') throw new Error(`a shard does not serve ${call.type}`);
  return (presence[call.method] as (...params: unknown[]) => unknown).apply(presence, call.params);
}

/** Opens this worker's own shard; `collect` drains the writes that other threads have queued for it. */
function openOwner(
  environments: readonly Environment[],
  { start, config, fleets, hold, metrics, log }: WorkerShardsOptions,
  collect: () => void,
): ShardOwner {
  const { counters, index, logBytesByDisk } = start;
  const environment = environments[index];
  if (environment === undefined) throw new Error('a worker owns the shard of its number');
  const others = environments.filter((other) => other !== environment);
  const mailBytesElsewhere = onceASecond((fleetId) =>
    others.reduce((sum, other) => sum + mailBytesIn(other, fleetId), 0),
  );
  return new ShardOwner({
    environment,
    versions: versionsOf(counters, index),
    depth: counterCellOf(counters.depths, index),
    config: { ...config, hold, mailBytesMax: mailBytesMaxOf(fleets, config, mailBytesElsewhere) },
    retention: {
      retention: retentionOf(fleets, environments.length, config, logBytesByDisk),
      bytesElsewhere: () => sumOfBytes(others.map(logBytesOf)),
    },
    metrics,
    log,
    collect,
  });
}

function mailBytesIn(environment: Environment, fleetId: string): number {
  environment.refresh();
  return readMailBytes(environment.table('fleetMail'), fleetId);
}

/** Bytes of limited fleets' records, as the owner last counted them. */
function logBytesOf(environment: Environment): ReadonlyMap<string, number> {
  environment.refresh();
  return storedLogBytes(openTables(environment).times);
}
