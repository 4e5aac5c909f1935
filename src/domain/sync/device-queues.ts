/**
 * A device's own order in place of keys (D30): up to which number the records of its last queues are stored. The list is
 * one value, the queue that moved last first: name length 1, name, stored to 6, skipped 6 each.
 */

/** How many queues of a device are remembered. */
export const queuesMax = 4;
export const queueNamePattern = /^[A-Za-z0-9_-]{1,16}$/;
/** Largest number of a record in its queue. */
export const queueNumberMax = 2 ** 48 - 1;

/** The records of a sync in their queue: consecutive numbers from `seq` on. */
export interface QueueRange {
  name: string;
  seq: number;
}

export interface QueueStand {
  /** Number of the last record that is done with: stored, or refused for good. 0 for a queue that is not known. */
  storedTo: number;
  /** Numbers up to there that never came: a bounded queue may have dropped them. */
  skipped: number;
}

/** What a sync's records do to the queues of their device. */
export interface QueueAdvance {
  /** Records at the front of the sync that are stored already. */
  known: number;
  position: QueueStand;
  /** The new list; undefined if nothing changes. */
  queues: Buffer | undefined;
}

interface Queue extends QueueStand {
  name: string;
}

const numberBytes = 6;

export function queuePosition(queues: Buffer, name: string): QueueStand {
  const { storedTo, skipped } = decode(queues).find((queue) => queue.name === name) ?? unknown;
  return { storedTo, skipped };
}

const unknown: QueueStand = { storedTo: 0, skipped: 0 };

/** Moves a queue behind `count` records. A gap is taken and counted. */
export function advance(queues: Buffer, { name, seq }: QueueRange, count: number): QueueAdvance {
  const all = decode(queues);
  const { storedTo, skipped } = all.find((queue) => queue.name === name) ?? unknown;
  const known = Math.min(Math.max(storedTo - seq + 1, 0), count);
  if (known === count) return { known, position: { storedTo, skipped }, queues: undefined };
  const position = { storedTo: seq + count - 1, skipped: skipped + Math.max(seq - storedTo - 1, 0) };
  const others = all.filter((queue) => queue.name !== name).slice(0, queuesMax - 1);
  return { known, position, queues: encode([{ name, ...position }, ...others]) };
}

/** True if the bytes are a valid list. */
export function isQueueList(bytes: Buffer): boolean {
  try {
    const queues = decode(bytes);
    const names = new Set(queues.map(({ name }) => name));
    return queues.length <= queuesMax && names.size === queues.length && queues.every(isSound);
  } catch {
    return false;
  }
}

function isSound({ name, storedTo, skipped }: Queue): boolean {
  return queueNamePattern.test(name) && storedTo > 0 && skipped < storedTo;
}

/** @throws RangeError for a damaged list */
function decode(bytes: Buffer): Queue[] {
  const queues: Queue[] = [];
  for (let at = 0; at < bytes.length; ) {
    const nameEnd = at + 1 + bytes.readUInt8(at);
    queues.push({
      name: bytes.toString('latin1', at + 1, nameEnd),
      storedTo: bytes.readUIntBE(nameEnd, numberBytes),
      skipped: bytes.readUIntBE(nameEnd + numberBytes, numberBytes),
    });
    at = nameEnd + 2 * numberBytes;
  }
  return queues;
}

function encode(queues: readonly Queue[]): Buffer {
  const bytes = Buffer.alloc(
    queues.reduce((length, { name }) => length + 1 + name.length + 2 * numberBytes, 0),
  );
  let at = 0;
  for (const { name, storedTo, skipped } of queues) {
    at = bytes.writeUInt8(name.length, at);
    at += bytes.write(name, at, 'latin1');
    at = bytes.writeUIntBE(storedTo, at, numberBytes);
    at = bytes.writeUIntBE(skipped, at, numberBytes);
  }
  return bytes;
}
