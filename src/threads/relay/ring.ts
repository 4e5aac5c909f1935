/**
 * A queue of frames from one thread to one other in shared memory: a frame costs a copy, where a message
 * through a port costs microseconds on both sides. One writes, one reads, and neither ever waits for the other.
 *
 * Layout: the reader's position, on a cache line of its own the writer's, then the frames: length 4, bytes,
 * padded to four. Positions count bytes and wrap at 2^32. A frame is never split: what does not fit before
 * the end begins at the start, and `skip` stands where it would have been.
 */
const readAt = 0;
const writtenAt = 16;
const headerBytes = 128;
const lengthBytes = 4;
const skip = -1;

function padded(bytes: number): number {
  return (lengthBytes + bytes + 3) & ~3;
}

/** Frames of more than this part of a ring go another way, so that one does not hold up the rest. */
const frameParts = 4;

/** What both ends see. `capacityBytes` is a power of two. */
abstract class RingEnd {
  protected readonly positions: Int32Array<SharedArrayBuffer>;
  protected readonly lengths: Int32Array<SharedArrayBuffer>;
  protected readonly capacityBytes: number;
  /** The frames' memory; offsets of frames are offsets in here. */
  readonly bytes: Buffer<SharedArrayBuffer>;

  constructor(memory: SharedArrayBuffer, index: number, capacityBytes: number) {
    const start = index * ringBytes(capacityBytes);
    this.capacityBytes = capacityBytes;
    this.positions = new Int32Array(memory, start, headerBytes / Int32Array.BYTES_PER_ELEMENT);
    this.lengths = new Int32Array(memory, start + headerBytes, capacityBytes / lengthBytes);
    this.bytes = Buffer.from(memory, start + headerBytes, capacityBytes);
  }

  protected offsetOf(position: number): number {
    return position & (this.capacityBytes - 1);
  }
}

/** Memory of one ring. */
export function ringBytes(capacityBytes: number): number {
  return headerBytes + capacityBytes;
}

export class RingWriter extends RingEnd {
  #written = 0;

  /** Room for a frame: its offset in `bytes`, or -1 when there is none. It is sent by `publish`. */
  reserve(length: number): number {
    const needed = padded(length);
    if (needed > this.capacityBytes / frameParts) return -1;
    const free = this.capacityBytes - ((this.#written - Atomics.load(this.positions, readAt)) >>> 0);
    const offset = this.offsetOf(this.#written);
    const untilEnd = this.capacityBytes - offset;
    const skipped = untilEnd < needed ? untilEnd : 0;
    if (skipped + needed > free) return -1;
    if (skipped > 0) this.lengths[offset / lengthBytes] = skip;
    this.#written = (this.#written + skipped + needed) | 0;
    const start = skipped > 0 ? 0 : offset;
    this.lengths[start / lengthBytes] = length;
    return start + lengthBytes;
  }

  /** The reader sees what was reserved. */
  publish(): void {
    Atomics.store(this.positions, writtenAt, this.#written);
  }
}

export class RingReader extends RingEnd {
  #read = 0;
  #written = 0;
  /** Of the frame that `next` found. */
  length = 0;

  get isEmpty(): boolean {
    return Atomics.load(this.positions, writtenAt) === this.#read;
  }

  /** The next frame's offset in `bytes`, or -1 when there is none. It is good until `release`. */
  next(): number {
    if (this.#read === this.#written) {
      this.#written = Atomics.load(this.positions, writtenAt);
      if (this.#read === this.#written) return -1;
    }
    let offset = this.offsetOf(this.#read);
    let length = this.lengths[offset / lengthBytes] ?? skip;
    if (length === skip) {
      this.#read = (this.#read + this.capacityBytes - offset) | 0;
      offset = 0;
      length = this.lengths[0] ?? 0;
    }
    this.#read = (this.#read + padded(length)) | 0;
    this.length = length;
    return offset + lengthBytes;
  }

  /** The writer may use again what was read. */
  release(): void {
    Atomics.store(this.positions, readAt, this.#read);
  }
}

/** Memory that the rings of all pairs of workers share, and its bound in each of them. */
const totalBytes = 32 * 1024 * 1024;
const ringBytesMax = 256 * 1024;
const ringBytesMin = 16 * 1024;

/** Shared by all workers. */
export interface WriteRelayMemory {
  capacityBytes: number;
  /** A ring for each ordered pair of workers. */
  rings: SharedArrayBuffer;
  /** A cell for each worker. */
  wakefulness: SharedArrayBuffer;
}

export function allocateWriteRelay(workers: number): WriteRelayMemory {
  const pairs = workers * workers;
  let capacityBytes = ringBytesMax;
  while (capacityBytes > ringBytesMin && capacityBytes * pairs > totalBytes) capacityBytes /= 2;
  return {
    capacityBytes,
    rings: new SharedArrayBuffer(workers === 1 ? 0 : pairs * ringBytes(capacityBytes)),
    wakefulness: new SharedArrayBuffer(workers * Int32Array.BYTES_PER_ELEMENT),
  };
}
