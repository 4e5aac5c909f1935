import { generateUuid } from '../../src/core/uuid.ts';
import {
  keyOfDevice,
  keyOfExpiry,
  keyOfMail,
  readDevice,
  readSequence,
} from '../../src/storage/lmdb/layout/keys.ts';
import { keyOfIdempotency } from '../../src/storage/tables/idempotency-keys.ts';
import { type Group, group, repeated } from './microbench.ts';
import { cycled, sampleDevice } from './samples.ts';

/** The keys of the store, written and read. */
export async function keys(): Promise<Group> {
  const devices = Array.from({ length: 1_000 }, () => sampleDevice().device.device);
  const id = generateUuid();
  const nowMs = Date.now();
  const mailKey = Buffer.from(keyOfMail(cycled(devices, 0), 1));
  return group(
    repeated('key of a device', (index) => keyOfDevice(cycled(devices, index))),
    repeated('key of a mail', (index) => keyOfMail(cycled(devices, index), index)),
    repeated('key of an expiry', (index) => keyOfExpiry(nowMs + index, cycled(devices, index), id)),
    repeated('key of an idempotency key', (index) => keyOfIdempotency(id, cycled(devices, index))),
    repeated(
      'device and sequence read off a key',
      () => readDevice(mailKey, 0).length + readSequence(mailKey, 18),
    ),
  );
}
