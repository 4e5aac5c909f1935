import { expect, it } from 'vitest';
import { ApiError } from '../../../src/core/errors.ts';
import { deviceKeyOf } from '../../../src/core/identity.ts';
import { Fleets } from '../../../src/declarations/fleet.ts';
import { judgeRecords } from '../../../src/device-api/sync/judged-records.ts';
import { noteRecords } from '../../../src/device-api/sync/noted-items.ts';
import { bytesBeyond, parseSync } from '../../../src/device-api/sync/sync-body.ts';
import { Refusals } from '../../../src/domain/devices/refusals.ts';
import { configWith } from '../../harness/server/config.ts';

const fleetId = 'FLEET001';
const device = deviceKeyOf(fleetId, 'PUMP000007');
const config = configWith();
const schemas = [{ kind: 'datapoint' as const, name: 'reading', text: '{"required":["a"]}' }];
const fleets = new Fleets([{ fleet: { fleetId, name: '', createdAtMs: 0 }, schemas }], {
  settings: config.settings,
  defersCompiling: true,
  onDisabled() {},
});

/** Counts what is noted, besides noting it. */
class CountedRefusals extends Refusals {
  notes = 0;

  override note(...args: Parameters<Refusals['note']>): void {
    this.notes += 1;
    super.note(...args);
  }
}

const times = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value);

it('equal refusals of a sync are noted once, with their number', async () => {
  const records = [
    ...times(200, 1),
    ...times(100, { kind: 'datapoint', schema: 'none', payload: { a: 1 } }),
    ...times(100, { kind: 'datapoint', schema: 'reading', payload: { b: 1 } }),
    ...times(100, { kind: 'datapoint', schema: 'reading', payload: {} }),
  ];
  const { errors } = await judgeRecords(parseSync(Buffer.from(JSON.stringify({ records }))), fleetId, {
    fleets,
    config,
  });
  const refusals = new CountedRefusals();
  noteRecords(refusals, device, records, errors);
  expect(refusals.notes).toBe(4);
  expect(refusals.of(device).refused.map(({ code, name, count }) => [code, name, count])).toEqual([
    ['invalid_body', undefined, 200],
    ['schema_not_found', 'none', 100],
    ['schema_mismatch', 'reading', 100],
    ['invalid_body', 'reading', 100],
  ]);
});

it('of hundreds of different ones no more are noted than are kept', () => {
  const records = Array.from({ length: 500 }, (_, n) => ({ kind: 'message', schema: `none${n}` }));
  const refusals = new CountedRefusals();
  noteRecords(refusals, device, records, times(500, new ApiError('schema_not_found')));
  expect(refusals.notes).toBe(16);
  expect(refusals.of(device).refused.map(({ name }) => name)).toEqual(
    records.slice(-16).map(({ schema }) => schema),
  );
});

it('what is wrong in the same way shares one error, and so its text', async () => {
  const wrong = [1, {}, { kind: 'message', schema: 'none' }, { kind: 'datapoint', schema: 'reading' }];
  const records = wrong.flatMap((record) => times(50, record));
  const { errors } = await judgeRecords(parseSync(Buffer.from(JSON.stringify({ records }))), fleetId, {
    fleets,
    config,
  });
  expect(errors.every((error) => error instanceof ApiError)).toBe(true);
  expect(new Set(errors).size).toBe(wrong.length);
});

it('D29: small items count as more than their bytes, large ones as what they are', () => {
  const beyond = (body: object): number => {
    const bytes = Buffer.from(JSON.stringify(body));
    return bytes.length + bytesBeyond(parseSync(bytes), bytes.length);
  };
  expect(beyond({ records: times(500, 1) })).toBe(500 * 64);
  expect(beyond({ settle: times(64, 1), records: [1] })).toBe(64 * 256 + 64);
  const large = { records: times(10, { payload: 'x'.repeat(1_000) }) };
  expect(beyond(large)).toBe(JSON.stringify(large).length);
});
