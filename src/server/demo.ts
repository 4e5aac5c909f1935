import { type DeviceKey, deviceIdOf, generateFleetId } from '../core/identity.ts';
import { formatUuid } from '../core/uuid.ts';
import type { Registry } from '../declarations/registry.ts';
import type { SchemaKind } from '../declarations/schemas/schema.ts';
import { newDevice } from '../domain/devices/new-device.ts';
import type { Shard } from '../domain/shard.ts';

/** The demo device of a first start. Its secret is shown only once and not stored. */
export interface Demo {
  fleet_id: string;
  device_id: string;
  device_secret: string;
  mail_id: string;
}

const schemas: readonly [SchemaKind, string, object][] = [
  [
    'datapoint',
    'temperature',
    {
      type: 'object',
      properties: { celsius: { type: 'number' } },
      required: ['celsius'],
      additionalProperties: false,
    },
  ],
  [
    'message',
    'opened',
    { type: 'object', properties: { door: { type: 'string', maxLength: 64 } }, required: ['door'] },
  ],
];

/** Creates a fleet with a datapoint and a message schema, and one device with one mail. */
export async function createDemo(
  registry: Registry,
  shards: { of(device: DeviceKey): Shard },
  limits: { ttlSeconds: number; mailboxMailsMax: number },
): Promise<Demo> {
  const fleetId = generateFleetId();
  await registry.createFleet({ fleetId, name: 'demo', createdAtMs: Date.now() });
  for (const [kind, name, schema] of schemas) {
    await registry.putSchema(fleetId, kind, name, Buffer.from(JSON.stringify(schema, null, 2)));
  }
  const made = newDevice(fleetId, { name: 'demo device', tags: ['demo'] });
  const { device } = made.device;
  const shard = shards.of(device);
  await shard.devices.create([made.device]);
  const payload = Buffer.from('{"text":"Hello from Fleetpost"}');
  const queued = await shard.mail.enqueue({ device, name: 'welcome', payload, ...limits });
  if (queued.result !== 'queued') throw new Error('the demo device did not take its mail');
  return {
    fleet_id: fleetId,
    device_id: deviceIdOf(device),
    device_secret: made.secret,
    mail_id: formatUuid(queued.mailId),
  };
}

/** Returns shell commands for the demo device's first session. */
export function demoCommands(demo: Demo, url: string, certFile: string): string[] {
  const curl = `curl -sS --cacert '${certFile.replaceAll("'", "'\\''")}'`;
  const credentials = `-H 'X-Fleet-ID: ${demo.fleet_id}' -H 'X-Device-ID: ${demo.device_id}' -H 'X-Device-Secret: ${demo.device_secret}'`;
  const json = "-H 'Content-Type: application/json'";
  return [
    `${curl} -i ${credentials} -X POST ${url}/v1/heartbeat`,
    `${curl} -i ${credentials} ${json} -d '{"celsius":21.5}' ${url}/v1/datapoint/temperature`,
    `${curl} -i ${credentials} ${url}/v1/mailbox/next`,
    `${curl} -i ${credentials} -X PUT ${url}/v1/mailbox/ack/${demo.mail_id}`,
    `${curl} -N ${credentials} -H 'Accept: text/event-stream' ${url}/v1/events`,
  ];
}
