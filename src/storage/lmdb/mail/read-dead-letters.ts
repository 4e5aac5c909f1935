import { type DeviceKey, fleetIdLength } from '../../../core/identity.ts';
import {
  type DeadLetter,
  type DeadLetterFilter,
  type DeadLetterWithPayload,
  isWanted,
} from '../../../domain/mail/ended-mail.ts';
import type { Page } from '../../../domain/shard.ts';
import { decodeDeadLetter, mailOf } from '../layout/dead-letter-record.ts';
import { deadDeviceAt, keyOfDeadLetter, readDevice } from '../layout/keys.ts';
import { storedJumpsMs } from '../layout/shard-clock.ts';
import type { Tables } from '../layout/tables.ts';
import { fleetRange } from './dead-letters.ts';

type LetterTables = Pick<Tables, 'dead' | 'times'>;

/** Letters that one look passes at most: of each shard in turn, on a thread that has other work. */
const lookedMax = 1_000;

/** A cursor is what follows the fleet in the key, in hexadecimal digits. A damaged letter is left out. */
export function readDeadLetters(
  { dead, times }: LetterTables,
  fleetId: string,
  filter: DeadLetterFilter,
  after: string,
  limit: number,
): Page<DeadLetter> {
  const { start, end } = fleetRange(fleetId);
  const last = after === '' ? undefined : Buffer.concat([start, Buffer.from(after, 'hex')]);
  const from = last === undefined ? { start } : { start: last, exclusiveStart: true };
  const jumpsMs = storedJumpsMs(times);
  const items: DeadLetter[] = [];
  let looked = 0;
  for (const { key, value } of dead.getRange({ ...from, end, limit: lookedMax })) {
    looked += 1;
    const letter = attempt(() => describe(key, value, jumpsMs));
    if (letter !== undefined && isWanted(letter, filter)) items.push(letter);
    if (looked === lookedMax || items.length === limit) {
      return { items, next: key.toString('hex', fleetIdLength) };
    }
  }
  return { items, next: null };
}

/** @throws Error for a damaged record. */
export function readDeadLetter(
  { dead, times }: LetterTables,
  device: DeviceKey,
  mailId: Uint8Array,
): DeadLetterWithPayload | undefined {
  const key = keyOfDeadLetter(device, mailId);
  const bytes = dead.getBinary(key);
  if (bytes === undefined) return undefined;
  return { ...describe(key, bytes, storedJumpsMs(times)), payload: mailOf(bytes).payload };
}

function describe(key: Buffer, value: Buffer, jumpsMs: number): DeadLetter {
  const { diedAtMs, queuedAtMs, ...letter } = decodeDeadLetter(value);
  return {
    ...letter,
    device: readDevice(key, deadDeviceAt),
    diedAtMs: diedAtMs + jumpsMs,
    queuedAtMs: queuedAtMs && queuedAtMs + jumpsMs,
  };
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
