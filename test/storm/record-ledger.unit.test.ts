/** The ledger of a storm, in `record-ledger.ts`. */

import { expect, it } from 'vitest';
import { deviceKeyOf } from '../../src/core/identity.ts';
import type { LoggedRecord } from '../harness/storage/log.ts';
import { Ledger } from './ledger.ts';
import type { SentRecord } from './record-ledger.ts';

const deviceId = 'DEVICE0001';
const device = deviceKeyOf('FLEET001', deviceId);

/** Violations of a log of three records of one device that were answered, all but what is changed. */
function violations(
  logOf: (sent: LoggedRecord[]) => (LoggedRecord | undefined)[] = (sent) => sent,
  change: (records: SentRecord[]) => void = () => {},
): string {
  const { records, findings } = new Ledger(1, true);
  const sent = [0, 1, 2].map((sequence) =>
    records.sending({ deviceId, sequence, kind: 'datapoint', key: 'k' }),
  );
  for (const record of sent) record.state = 'answered';
  change(sent);
  const log = sent.map(({ kind, payload }) => ({
    kind,
    schema: 'any',
    device,
    payload: Buffer.from(payload),
  }));
  const logged = logOf(log.map((one) => ({ ...one, position: 0 }))).flatMap((one) => one ?? []);
  records.look(
    0,
    logged.map((one, position) => ({ ...one, position })),
  );
  records.close();
  return findings.violations.join();
}

it('the ledger of a storm finds each way in which a log is not what was answered', () => {
  expect(violations()).toBe('');
  expect(violations(([a, , c]) => [a, c])).toBe(`lost: the reading 1 of ${deviceId}`);
  expect(violations(([a, b, c]) => [a, b, c, b])).toBe(`doubled: the reading 1 of ${deviceId}`);
  expect(violations(([a, b, c]) => [b, a, c])).toMatch(/^out of order: the reading 0 .* behind 1$/);
  const refused = ([, second]: SentRecord[]) => Object.assign(second ?? {}, { state: 'refused' });
  expect(violations((log) => log, refused)).toBe(`unknown: the reading 1 of ${deviceId}`);
  const other = (log: LoggedRecord[]) =>
    log.map((one) => ({ ...one, payload: Buffer.from(`${one.payload} `) }));
  expect(violations(other)).toContain('is not as it was sent');
});

it('what was not answered may be there or not, and once at most', () => {
  const open = ([, , last]: SentRecord[]) => Object.assign(last ?? {}, { state: 'unanswered' });
  expect(violations((log) => log, open)).toBe('');
  expect(violations(([a, b]) => [a, b], open)).toBe('');
  expect(violations(([a, b, c]) => [a, b, c, c], open)).toBe(`doubled: the reading 2 of ${deviceId}`);
});
