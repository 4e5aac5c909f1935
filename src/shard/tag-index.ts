import { hash } from 'node:crypto';
import type { DeviceKey } from '../core/identity.ts';
import type { Environment, Table } from '../store/environment.ts';
import { decodeTags } from './device-record.ts';
import { keyOfTag, readDevice, tagDigestBytes } from './keys.ts';
import type { Step } from './move-devices.ts';

/** Devices of one step of building the index: one transaction. */
const devicesPerStep = 5_000;
const nothing = Buffer.alloc(0);

/** What stands for a tag in the keys of the index, one character a byte: a tag may be longer than a key. */
export function digestOfTag(tag: string): string {
  return hash('sha256', tag, 'buffer').toString('latin1', 0, tagDigestBytes);
}

/** In the transaction that changes the device. */
export function changeTags(
  table: Table,
  device: DeviceKey,
  before: readonly string[],
  after: readonly string[],
): void {
  if (before === after) return;
  // By their digests: two tags of one device can share an entry, which stays with either.
  const gone = new Set(before.map(digestOfTag));
  const come = new Set(after.map(digestOfTag));
  for (const digest of gone) if (!come.has(digest)) table.removeSync(keyOfTag(digest, device));
  for (const digest of come) if (!gone.has(digest)) table.putSync(keyOfTag(digest, device), nothing);
}

/** None of a record that is damaged: its device can still be deleted, and costs no other that has the tag. */
export function tagsOf(bytes: Buffer): readonly string[] {
  try {
    return decodeTags(bytes);
  } catch {
    return [];
  }
}

/**
 * Makes the index of a shard that has none yet, or a part of one, a step at a time. What is there is removed
 * first: an older version that served the folder in between would not have kept it.
 */
export function* buildTagIndex(environment: Environment): Generator<Step> {
  const devices = environment.table('devices');
  const tags = environment.table('tags');
  environment.writeSync(() => tags.clearSync());
  let last: Buffer | undefined;
  for (;;) {
    const from = last === undefined ? {} : { start: last, exclusiveStart: true };
    const step = [...devices.getRange({ ...from, limit: devicesPerStep })];
    if (step.length === 0) return;
    last = step.at(-1)?.key;
    environment.writeSync(() => {
      for (const { key, value } of step) {
        const device = readDevice(key, 0);
        changeTags(tags, device, [], tagsOf(value));
      }
    });
    yield { passed: step.length, devices: step.length };
  }
}
