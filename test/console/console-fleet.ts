import { createFleet, type TestDevice, type TestFleet } from '../harness/devices/device.ts';
import type { TestServer } from '../harness/server/server.ts';

/** Names and texts that a page must not take for markup, for another direction, or for nothing. */
export const hostileTexts = [
  '<img src=x onerror="globalThis.isHacked = true">',
  '"><script>globalThis.isHacked = true</script>',
  'abc\u202Egnp.exe',
  '\u2066left\u2069\u200B\u200Bno width',
  'javascript:alert(1)',
  `${'wide '.repeat(40)}end`,
] as const;

const nested = `${'{"a":'.repeat(100)}1${'}'.repeat(100)}`;

/** Payloads that hold up or mislead a page: large, many keys, deep, inexact numbers, halves of characters. */
export const hostilePayloads: readonly string[] = [
  `{"counter":9007199254740993,"exact":1.10,"markup":"<b onclick=alert(1)>x</b>","turned":"\\u202Egnp.exe"}`,
  `{"half":"\\ud800 \\udc00","zero":"\\u0000","key\\u200B":1,"__proto__":{"isHacked":true}}`,
  `{${Array.from({ length: 10_000 / 2 }, (_, index) => `"k${index}":${index}`).join(',')}}`,
  `{"text":"${'x'.repeat(60_000)}"}`,
  nested,
];

export interface ConsoleFleet {
  fleet: TestFleet;
  /** Has one of each state, mail and a device whose secret is known. */
  pump: TestDevice;
  hostile: TestDevice;
  /** Id of a mail that the pump fetches and never answers. */
  mailId: string;
}

/** A fleet as an operator has it: some devices, mail that waits, records, dead letters, and one hostile device. */
export async function createConsoleFleet(server: TestServer): Promise<ConsoleFleet> {
  const fleet = await createFleet(server, { name: 'Lamp hall' });
  await fleet.putSchema('mail', 'set_speed', {
    type: 'object',
    required: ['rpm'],
    properties: {
      rpm: { type: 'integer', minimum: 0, maximum: 3_000 },
      mode: { enum: ['eco', 'fast'] },
      reverse: { type: 'boolean' },
    },
  });
  const lamps = Array.from({ length: 24 }, (_, index) =>
    fleet.createDevice({
      device_id: `LAMP${String(index).padStart(6, '0')}`,
      name: `Lamp ${index}`,
      tags: index % 3 === 0 ? ['hall', 'floor-2'] : ['hall'],
    }),
  );
  const [pump, hostile, off] = await Promise.all([
    fleet.createDevice({ device_id: 'PUMP07HALL', name: 'Pump in the cellar', tags: ['pump'] }),
    fleet.createDevice({ name: hostileTexts[0], tags: ['<i>tag</i>', 'a"b c'] }),
    fleet.createDevice({ device_id: 'LAMPOFF001', name: 'Lamp that is off' }),
  ]);
  await Promise.all(lamps);
  await server.admin('PATCH', off.adminPath, { enabled: false });
  for (const celsius of [20.5, 21, 21.25]) await pump.request('POST', '/v1/datapoint/reading', { celsius });
  // The schema refuses this reading again and again: the pump is stuck with it.
  await fleet.putSchema('datapoint', 'flow', {
    type: 'object',
    properties: { litres: { type: 'number' } },
    required: ['litres'],
  });
  for (let tries = 0; tries < 3; tries += 1)
    await pump.request('POST', '/v1/datapoint/flow', { litres: 'much' });
  const { mailId } = await pump.sendMail('lock_check', '{"door":"north"}');
  for (let fetches = 0; fetches < 5; fetches += 1) await pump.next();
  await pump.sendMail('report');
  await fillWithHostile(hostile);
  await reject(hostile, 'refused_mail', hostilePayloads[0] ?? '{}');
  return { fleet, pump, hostile, mailId };
}

async function fillWithHostile(device: TestDevice): Promise<void> {
  for (const payload of hostilePayloads) await device.request('POST', '/v1/msg/note', payload);
}

/** Lets a mail become a dead letter, then leaves hostile ones in the mailbox. */
async function reject(device: TestDevice, name: string, payload: string): Promise<void> {
  const { mailId } = await device.sendMail(name, payload);
  await device.next();
  await device.settle('reject', mailId);
  for (const one of hostilePayloads) await device.sendMail('note', one);
}
