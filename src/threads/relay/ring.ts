/**
 * A queue of frames from one thread to another in shared memory: a frame costs a copy, where a message through a port
 * costs microseconds on both sides. Single producer, single consumer; neither ever waits for the other.
 *
 * Layout: the reader's position, on a cache line of its own the writer's, then the frames: length 4, bytes, padded to
 * four. Positions count bytes and wrap at 2^32. A frame is never split: what does not fit before the end begins at the
 * start, and `skip` marks where it would have been.
 */
const readAt = 0;
const writtenAt = 16;
const headerBytes = 128;
const lengthBytes = 4;
const skip = -1;

function padded(bytes: number): number {
  return (lengthBytes + bytes + 3) & ~3;
}

/** Frames larger than this fraction of a ring go through the port, so that one does not hold up the rest. */
const frameParts = 4;

/** State of both ends. `capacityBytes` is a power of two. */
abstract class RingEnd {
  protected readonly positions: Int32Array<SharedArrayBuffer>;
  protected readonly lengths: Int32Array<SharedArrayBuffer>;
  protected readonly capacityBytes: number;
  /** Memory of the frames; their offsets refer to it. */
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

export function ringBytes(capacityBytes: number): number {
  return headerBytes + capacityBytes;
}

export class RingWriter extends RingEnd {
  #written = 0;

  /** Reserves a frame and returns its offset in `bytes`, or -1 when the ring is full. `publish` sends it. */
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

  /** Makes reserved frames visible to the reader. */
  publish(): void {
    Atomics.store(this.positions, writtenAt, this.#written);
  }
}

export class RingReader extends RingEnd {
  #read = 0;
  #written = 0;
  /** Length of the frame that `next` returned. */
  length = 0;

  get isEmpty(): boolean {
    return Atomics.load(this.positions, writtenAt) === this.#read;
  }

  /** Offset of the next frame in `bytes`, or -1 when there is none. Valid until `release`. */
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

  /** Lets the writer reuse what was read. */
  release(): void {
    Atomics.store(this.positions, readAt, this.#read);
  }
}

/** Memory of the rings of all pairs of workers together, and bounds of each. */
const totalBytes = 32 * 1024 * 1024;
const ringBytesMax = 256 * 1024;
const ringBytesMin = 16 * 1024;

/** Shared by all workers. */
export interface WriteRelayMemory {
  capacityBytes: number;
  /** One ring per ordered pair of workers. */
  rings: SharedArrayBuffer;
  /** One cell per worker. */
  sleepFlags: SharedArrayBuffer;
}

export function allocateWriteRelay(workers: number): WriteRelayMemory {
  const pairs = workers * workers;
  let capacityBytes = ringBytesMax;
  while (capacityBytes > ringBytesMin && capacityBytes * pairs > totalBytes) capacityBytes /= 2;
  return {
    capacityBytes,
    rings: new SharedArrayBuffer(workers === 1 ? 0 : pairs * ringBytes(capacityBytes)),
    sleepFlags: new SharedArrayBuffer(workers * Int32Array.BYTES_PER_ELEMENT),
  };
}
