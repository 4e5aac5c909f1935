import type { DeviceKey } from '../../core/identity.ts';
import type { Presence } from '../../domain/devices/device-query.ts';
import type { StreamSink } from '../../domain/shard-streams.ts';
import type { Completion } from '../../domain/write.ts';
import type { Write, WriteAnswer } from '../../storage/lmdb/shard/write.ts';
import type { ShardWriter } from '../../storage/lmdb/shard/write-queue.ts';
import type { Channel } from './channel.ts';
import type { Notice } from './messages.ts';

/** Writes to a shard whose owner is another thread. */
export class RemoteShardWriter implements ShardWriter {
  readonly presence: Presence;
  readonly #channel: Channel;
  readonly #sinks = new Map<number, StreamSink>();
  readonly #send: (write: Write, completion: Completion<WriteAnswer>) => boolean;
  #lastStream = 0;

  /** `send` relays what need not go through the port, and returns whether it did. */
  constructor(
    channel: Channel,
    send: (write: Write, completion: Completion<WriteAnswer>) => boolean = () => false,
  ) {
    this.#channel = channel;
    this.#send = send;
    const ask = <M extends keyof Presence>(method: M) =>
      ((...params: unknown[]) => channel.ask({ type: 'presence', method, params })) as Presence[M];
    this.presence = {
      areConnected: ask('areConnected'),
      connectedDevices: ask('connectedDevices'),
      connectedCount: ask('connectedCount'),
    };
  }

  write(write: Write, completion: Completion<WriteAnswer>): void {
    if (!this.#send(write, completion))
      this.#channel.call({ type: 'write', write }, completion as Completion<unknown>);
  }

  async subscribe(device: DeviceKey, sink: StreamSink): Promise<() => void> {
    this.#lastStream += 1;
    const stream = this.#lastStream;
    this.#sinks.set(stream, sink);
    await this.#channel.ask({ type: 'subscribe', stream, device, waits: sink.waits === true });
    return () => {
      if (this.#sinks.delete(stream)) this.#channel.notify({ type: 'unsubscribe', stream });
    };
  }

  /** Handles a notice of the owner for a stream of this thread. */
  receive(notice: Notice): void {
    if (notice.type === 'announce') this.#sinks.get(notice.stream)?.announce(notice.announcement);
    else if (notice.type === 'recheckStream') this.#sinks.get(notice.stream)?.recheck();
    else if (notice.type === 'endStream') {
      const sink = this.#sinks.get(notice.stream);
      this.#sinks.delete(notice.stream);
      sink?.end();
    }
  }
}
