import { Readable } from 'node:stream';
import { Type } from 'typebox';
import { unavailable } from '../core/errors.ts';
import { deviceIdOf, fleetIdOf } from '../core/identity.ts';
import type { Shard } from '../shard/shard.ts';
import type { AdminApp, AdminContext } from './context.ts';
import { errorAnswers, fleetPath, tags } from './documents.ts';
import { type NewDevice, newDevice } from './new-device.ts';

/** Devices made in one go: some milliseconds of this thread, and one commit of each shard. */
const chunkDevices = 1_000;

const csvAnswer = {
  description: 'The devices.',
  content: { 'text/csv': { schema: Type.Unsafe<Readable>({ type: 'string' }) } },
};
const header = 'fleet_id,device_id,device_secret\n';

function line({ device: { device }, secret }: NewDevice): string {
  return `${fleetIdOf(device)},${deviceIdOf(device)},${secret}\n`;
}

/** The devices by the shard that they belong to. */
function byShard(devices: readonly NewDevice[], shards: AdminContext['shards']): Map<Shard, NewDevice[]> {
  const groups = new Map<Shard, NewDevice[]>();
  for (const one of devices) {
    const shard = shards.of(one.device.device);
    const group = groups.get(shard);
    if (group) group.push(one);
    else groups.set(shard, [one]);
  }
  return groups;
}

/** Stores devices under generated ids; where one is taken, it gets another. Answers them as they were stored. */
async function store(devices: readonly NewDevice[], shards: AdminContext['shards']): Promise<NewDevice[]> {
  const groups = [...byShard(devices, shards)];
  const stored = await Promise.all(
    groups.map(async ([shard, group]) => {
      const taken = await shard.createDevices(group.map(({ device }) => device));
      if (taken === undefined) return group;
      const renamed = group.map((one) => {
        const { device, name, tags } = one.device;
        return device === taken ? newDevice(fleetIdOf(device), { name, tags }) : one;
      });
      return store(renamed, shards);
    }),
  );
  return stored.flat();
}

/**
 * `/fleets/{fleet_id}/devices:import`. A line is sent once its device is on disk. An import that cannot be
 * finished breaks the transfer off, so that nobody takes it for whole; the devices of its lines are there.
 */
export function addImportRoute(app: AdminApp, { registry, shards }: AdminContext): void {
  let stopping = false;
  app.addHook('preClose', async () => {
    stopping = true;
  });

  async function* lines(
    fleetId: string,
    count: number,
    tags: readonly string[],
    onStored: (devices: number) => void,
  ): AsyncGenerator<string> {
    const make = (left: number): NewDevice[] =>
      Array.from({ length: Math.min(left, chunkDevices) }, () => newDevice(fleetId, { tags }));
    let made = make(count);
    for (let left = count; left > 0; left -= chunkDevices) {
      if (stopping) throw unavailable('The server is stopping.');
      const storing = store(made, shards);
      // This thread makes the next ones while the shards write.
      made = make(left - made.length);
      const stored = await storing;
      onStored(stored.length);
      // The header waits for the first devices: a refusal until then still gets its own status.
      yield (left === count ? header : '') + stored.map(line).join('');
    }
  }

  app.post(
    '/fleets/:fleet_id/devices::import',
    {
      config: { scope: 'provision' },
      schema: {
        description:
          'Makes devices and answers their secrets, shown once: a CSV with a line each, as they are stored.',
        params: fleetPath,
        body: Type.Object(
          { count: Type.Integer({ minimum: 1, maximum: 1_000_000 }), tags: Type.Optional(tags) },
          { additionalProperties: false },
        ),
        response: { 200: csvAnswer, ...errorAnswers },
      },
    },
    async ({ params, body, audited: { about } }, reply) => {
      const { fleet } = registry.fleet(params.fleet_id);
      // Pulls the next chunk when the client has taken the last; ends the generator when the client leaves.
      let devices = 0;
      const csv = Readable.from(
        lines(fleet.fleetId, body.count, body.tags ?? [], (stored) => {
          devices += stored;
          about.devices = devices;
        }),
      );
      return reply.type('text/csv; charset=utf-8').send(csv);
    },
  );
}
