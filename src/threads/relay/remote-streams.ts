import type { DeviceKey } from '../../core/identity.ts';
import type { ShardWriter } from '../../storage/lmdb/shard/write-queue.ts';
import type { Channel } from './channel.ts';

/** Subscriptions of one other thread at this thread's shard: the far end of RemoteShardWriter. */
export class RemoteStreams {
  readonly #owner: ShardWriter;
  readonly #channel: Channel;
  readonly #leaves = new Map<number, () => void>();

  constructor(owner: ShardWriter, channel: Channel) {
    this.#owner = owner;
    this.#channel = channel;
  }

  async subscribe(stream: number, device: DeviceKey, waits: boolean): Promise<void> {
    const leave = await this.#owner.subscribe(device, {
      waits,
      announce: (announcement) => this.#channel.notify({ type: 'announce', stream, announcement }),
      recheck: () => this.#channel.notify({ type: 'recheckStream', stream }),
      end: () => {
        this.#leaves.delete(stream);
        this.#channel.notify({ type: 'endStream', stream });
      },
    });
    this.#leaves.set(stream, leave);
  }

  unsubscribe(stream: number): void {
    this.#leaves.get(stream)?.();
    this.#leaves.delete(stream);
  }
}
