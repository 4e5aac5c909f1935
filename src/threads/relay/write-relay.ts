import { ApiError } from '../../core/errors.ts';
import { busyWrites, type Completion } from '../../domain/write.ts';
import type { Write, WriteAnswer } from '../../storage/lmdb/shard/write.ts';
import type { Channel } from './channel.ts';
import { RingReader, RingWriter, type WriteRelayMemory } from './ring.ts';
import { encodeAnswer, encodeWrite, type FrameReceiver, takeFrame } from './write-codec.ts';

/** Sleep flags: a worker that is awake polls its rings; one that is asleep must be woken. */
const asleep = 0;
const awake = 1;

interface Peer {
  index: number;
  outgoing: RingWriter;
  incoming: RingReader;
  receiver: FrameReceiver;
  channel: Channel;
}

export interface WriteRelayOptions {
  /** Index of this worker. */
  index: number;
  workers: number;
  memory: WriteRelayMemory;
  /** Poll interval of a busy worker. */
  commitDelayMilliseconds: number;
  /** Writes in flight to the own shard. */
  depth: Int32Array<SharedArrayBuffer>;
  /** A write of another worker for the own shard. */
  onWrite(write: Write, completion: Completion<WriteAnswer>): void;
}

/**
 * Relays writes and their answers between workers. The cost of a crossing is waking the other thread: some tens of
 * microseconds, many times a request. So a busy worker polls its rings every few milliseconds, and only an idle one is
 * woken by a message, at once.
 */
export class WriteRelay {
  readonly #options: WriteRelayOptions;
  readonly #sleepFlags: Int32Array<SharedArrayBuffer>;
  readonly #peers = new Map<number, Peer>();
  /** Completions by call number; an array, for the reason of `PendingExchanges`. */
  readonly #waiting: (Completion<WriteAnswer> | undefined)[] = [];
  readonly #freeCalls: number[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(options: WriteRelayOptions) {
    this.#options = options;
    this.#sleepFlags = new Int32Array(options.memory.sleepFlags);
  }

  connect(index: number, channel: Channel): void {
    const { memory, index: own, workers, onWrite } = this.#options;
    const peer: Peer = {
      index,
      outgoing: new RingWriter(memory.rings, own * workers + index, memory.capacityBytes),
      incoming: new RingReader(memory.rings, index * workers + own, memory.capacityBytes),
      receiver: {
        write: (call, write) => {
          onWrite(write, {
            resolve: (answer) => this.#answer(peer, call, answer),
            reject: (error) => refuse(peer, call, error),
          });
        },
        answer: (call, answer) => this.complete(call, answer),
      },
      channel,
    };
    this.#peers.set(index, peer);
  }

  /** Returns false when the write must go through the port: it has no frame, or the ring is full. */
  send(to: number, write: Write, completion: Completion<WriteAnswer>): boolean {
    const peer = this.#peers.get(to);
    if (peer === undefined) return false;
    const call = this.#freeCalls.pop() ?? this.#waiting.length;
    if (!encodeWrite(peer.outgoing, call, write)) {
      this.#freeCalls.push(call);
      return false;
    }
    this.#waiting[call] = completion;
    this.#publish(peer);
    if (this.#timer === undefined && this.#isBusy()) {
      Atomics.store(this.#sleepFlags, this.#options.index, awake);
      this.#pollLater();
    }
    return true;
  }

  /** Completes a call whose answer had no frame, found the ring full, or was a refusal. */
  complete(call: number, answer: WriteAnswer | ApiError): void {
    const completion = this.#waiting[call];
    this.#waiting[call] = undefined;
    this.#freeCalls.push(call);
    if (answer instanceof Error) completion?.reject(answer);
    else completion?.resolve(answer);
  }

  /** Handles all frames that have arrived. */
  drain(): void {
    for (const { incoming, receiver } of this.#peers.values()) {
      for (let at = incoming.next(); at >= 0; at = incoming.next()) {
        takeFrame(incoming.bytes, at, incoming.length, receiver);
      }
      incoming.release();
    }
  }

  /**
   * Handles what has arrived, then falls asleep if idle. Called when another worker has woken this one, and by its own
   * timer.
   */
  poll(): void {
    if (this.#timer !== undefined) return;
    const { index } = this.#options;
    for (;;) {
      this.drain();
      if (this.#isBusy()) {
        this.#pollLater();
        return;
      }
      Atomics.store(this.#sleepFlags, index, asleep);
      // A peer that wrote before it could see the flag found this worker awake, and woke nobody.
      if ([...this.#peers.values()].every(({ incoming }) => incoming.isEmpty)) return;
      Atomics.store(this.#sleepFlags, index, awake);
    }
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #pollLater(): void {
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.poll();
    }, this.#options.commitDelayMilliseconds);
  }

  /** True if many calls are in flight from here, or writes to here. */
  #isBusy(): boolean {
    const { depth, commitDelayMilliseconds } = this.#options;
    if (commitDelayMilliseconds === 0) return false;
    return (
      this.#waiting.length - this.#freeCalls.length >= busyWrites || Atomics.load(depth, 0) >= busyWrites
    );
  }

  #publish({ index, outgoing, channel }: Peer): void {
    outgoing.publish();
    if (Atomics.exchange(this.#sleepFlags, index, awake) === asleep) channel.notifyNow({ type: 'wake' });
  }

  #answer(peer: Peer, call: number, answer: WriteAnswer): void {
    if (encodeAnswer(peer.outgoing, call, answer)) this.#publish(peer);
    else peer.channel.notify({ type: 'answered', call, answer });
  }
}

function refuse({ channel }: Peer, call: number, error: Error): void {
  const { code, options } = error instanceof ApiError ? error : new ApiError('internal_error');
  channel.notify({ type: 'refused', call, code, options });
}
