import { expect, it } from 'vitest';
import { Fleets } from '../../../src/declarations/fleet.ts';
import { type JudgedRecords, judgeRecords } from '../../../src/device-api/sync/judged-records.ts';
import { parseSync } from '../../../src/device-api/sync/sync-body.ts';
import { configWith } from '../../harness/server/config.ts';

const fleetId = 'FLEET001';
const config = configWith();
const text = '{"type":"object"}';
const schemas = [
  { kind: 'datapoint' as const, name: 'reading', text },
  { kind: 'datapoint' as const, name: 'slow', text, disabled: 'it took long' },
];
const fleets = new Fleets([{ fleet: { fleetId, name: '', createdAtMs: 0 }, schemas }], {
  settings: config.settings,
  defersCompiling: true,
  onDisabled() {},
});

/** Judges datapoints of these schemas. */
function judge(names: string[], queue: object = {}): Promise<JudgedRecords> {
  const records = names.map((schema, n) => ({ kind: 'datapoint', schema, payload: { n } }));
  const body = parseSync(Buffer.from(JSON.stringify({ records, ...queue })));
  return judgeRecords(body, fleetId, { fleets, config });
}

const codesOf = ({ errors }: JudgedRecords): (string | undefined)[] => errors.map((error) => error?.code);
const acceptedOf = ({ accepted }: JudgedRecords): (string | undefined)[] =>
  accepted.map((record) => record?.payload.toString());

it('D29: without a queue a record that cannot be judged now is refused by itself', async () => {
  const judged = await judge(['reading', 'slow', 'none', 'reading']);
  expect(codesOf(judged)).toEqual([undefined, 'unavailable', 'schema_not_found', undefined]);
  expect(acceptedOf(judged)).toEqual(['{"n":0}', undefined, undefined, '{"n":3}']);
});

it('D30: in a queue all wait behind a record that cannot be judged now, but not behind one that is refused', async () => {
  const judged = await judge(['none', 'reading', 'slow', 'reading', 'none'], { queue: 'q', seq: 1 });
  expect(codesOf(judged)).toEqual([
    'schema_not_found',
    undefined,
    ...['unavailable', 'unavailable', 'unavailable'],
  ]);
  expect(acceptedOf(judged)).toEqual([undefined, '{"n":1}']);
});
