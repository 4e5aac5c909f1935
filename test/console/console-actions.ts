import type { TestDevice, TestFleet } from '../harness/devices/device.ts';
import type { TestServer } from '../harness/server/server.ts';
import { until } from '../harness/server/vitals.ts';
import { hostilePayloads } from './console-fleet.ts';

const tooWarm = `import type { Action } from 'fleetpost/action';

const tooWarm: Action = async (record, fleet) => {
  const { celsius } = record.payload;
  if (celsius > 30) await fleet.send(record.device, 'set_fan', { on: true });
};

export default tooWarm;
`;

/** A source whose runs log and keep what devices wrote, and fail for some. */
const keeper = `import type { Action } from 'fleetpost/action';

const keeper: Action = async (record, fleet) => {
  for (const [key, value] of Object.entries(record.payload).slice(0, 4)) {
    fleet.log(key, value);
    await fleet.state.set(key.slice(0, 60) || 'empty', typeof value === 'string' ? value.slice(0, 100) : 1);
  }
  fleet.log('\\u202Egnp.exe', '<img src=x onerror="globalThis.isHacked = true">');
  if ('half' in record.payload) throw new Error('<b>not\\u202E good</b>');
};

export default keeper;
`;

/** Actions as an operator has them: one with two versions, one disabled, and one that fails for what hostile devices send. */
export async function createConsoleActions(
  server: TestServer,
  fleet: TestFleet,
  { pump, hostile }: { pump: TestDevice; hostile: TestDevice },
): Promise<void> {
  await fleet.putSchema('datapoint', 'temperature', {
    type: 'object',
    required: ['celsius'],
    properties: {
      celsius: { type: 'number', minimum: -60, maximum: 120, description: 'Of the air, in the shade' },
      sensor: { enum: ['inside', 'outside'] },
    },
  });
  await fleet.putSchema('mail', 'set_fan', {
    type: 'object',
    required: ['on'],
    properties: { on: { type: 'boolean' } },
  });
  const put = (name: string, body: object): Promise<unknown> =>
    server.admin('PUT', `/fleets/${fleet.fleetId}/actions/${name}`, { language: 'typescript', ...body });
  const onTemperature = { on: [{ kind: 'datapoint', schema: 'temperature' }] };
  await put('too-warm', { source: tooWarm, ...onTemperature });
  await put('too-warm', {
    source: tooWarm.replace('> 30', '> 28'),
    tests: [
      {
        record: { device: pump.deviceId, payload: { celsius: 35 } },
        mails: [{ to: pump.deviceId, name: 'set_fan', payload: { on: true } }],
      },
    ],
  });
  await put('asleep', { source: tooWarm, ...onTemperature, enabled: false });
  await put('keep-notes', { source: keeper, on: [{ kind: 'message', schema: 'note' }] });
  for (const celsius of [21.5, 27.25, 31.75])
    await pump.request('POST', '/v1/datapoint/temperature', { celsius });
  for (const payload of hostilePayloads) await hostile.request('POST', '/v1/msg/note', payload);
  await until(async () => {
    const { body } = await server.admin<{ dead_letters: number; in_hand: number }>(
      'GET',
      `/fleets/${fleet.fleetId}/actions/keep-notes`,
    );
    return body.dead_letters > 0 && body.in_hand === 0;
  });
}
