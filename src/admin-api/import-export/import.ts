import { Readable } from 'node:stream';
import { type Static, Type } from 'typebox';
import { newDevicesBody } from '../../contract/device.ts';
import { errorAnswers, fleetPath } from '../../contract/document.ts';
import { deviceIdOf, fleetIdOf } from '../../core/identity.ts';
import type { Registry } from '../../declarations/registry.ts';
import { type NewDevice, newDevice } from '../../domain/devices/new-device.ts';
import type { Shard } from '../../domain/shard.ts';
import type { AdminApiConfig } from '../config.ts';
import type { AdminApp, AllShards, Handler } from '../request/context.ts';
import { routesOf } from '../request/route.ts';
import { Transfers } from '../request/transfers.ts';
import { DeviceImport, existingPolicies, importTypes } from './device-import.ts';

interface Needs {
  config: AdminApiConfig;
  registry: Registry;
  shards: AllShards;
}

/** Devices created at a time: some milliseconds of this thread, and one commit of each shard. */
const chunkDevices = 1_000;

/** Has no schema, because each line is validated by itself. */
const lines = Type.Unsafe<Readable>({ description: 'One device per line.' });
const importBody = {
  content: {
    'application/json': { schema: newDevicesBody },
    ...Object.fromEntries(importTypes.map((type) => [type, { schema: lines }])),
  },
};
const importQuery = Type.Object({
  on_existing: Type.Unsafe<(typeof existingPolicies)[number]>({
    type: 'string',
    enum: [...existingPolicies],
    default: 'error',
    description:
      'What to do with a listed device that exists: answer an error, skip it, or update it from its line.',
  }),
  resume: Type.Boolean({
    default: false,
    description:
      'Resume an earlier import of the same lines: a device that equals its line, including its secret, is `unchanged` instead of `already_exists`.',
  }),
  from_line: Type.Integer({
    minimum: 1,
    default: 1,
    description: 'Skip earlier lines. The answers of an import that ended early tell which are stored.',
  }),
});

const answerText = Type.Unsafe<Readable>({ type: 'string' });
const importAnswer = {
  description: 'One line per device.',
  content: Object.fromEntries(importTypes.map((type) => [type, { schema: answerText }])),
};
const header = 'fleet_id,device_id,device_secret\n';

function line({ device: { device }, secret }: NewDevice): string {
  return `${fleetIdOf(device)},${deviceIdOf(device)},${secret}\n`;
}

function byShard(devices: readonly NewDevice[], shards: AllShards): Map<Shard, NewDevice[]> {
  const groups = new Map<Shard, NewDevice[]>();
  for (const one of devices) {
    const shard = shards.of(one.device.device);
    const group = groups.get(shard);
    if (group) group.push(one);
    else groups.set(shard, [one]);
  }
  return groups;
}

/** Stores devices under generated ids, replacing ids that are taken. Returns the devices as stored. */
async function store(devices: readonly NewDevice[], shards: AllShards): Promise<NewDevice[]> {
  const groups = [...byShard(devices, shards)];
  const stored = await Promise.all(
    groups.map(async ([shard, group]) => {
      const taken = await shard.devices.create(group.map(({ device }) => device));
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

async function* generate(
  { registry, shards }: Pick<Needs, 'registry' | 'shards'>,
  { fleetId, count, tags }: { fleetId: string; count: number; tags: readonly string[] },
  signal: AbortSignal,
  onStored: (devices: number) => void,
): AsyncGenerator<string> {
  const make = (left: number): NewDevice[] =>
    Array.from({ length: Math.min(left, chunkDevices) }, () => newDevice(fleetId, { tags }));
  let next = make(count);
  for (let left = count; left > 0; left -= chunkDevices) {
    signal.throwIfAborted();
    // It may be deleted meanwhile.
    registry.fleet(fleetId);
    const storing = store(next, shards);
    // This thread generates the next devices while the shards write.
    next = make(left - next.length);
    const stored = await storing;
    onStored(stored.length);
    // The header waits for the first devices, so that a refusal until then still gets its own status.
    yield (left === count ? header : '') + stored.map(line).join('');
  }
}

const importing = {
  summary: 'Create or import devices',
  description:
    'JSON: creates devices and answers a CSV with one line per device as it is stored, including its secret, which is shown only once. CSV or NDJSON: imports the listed devices and answers the outcome of each line once it is on disk; after importBadLinesMax lines that are no device it ends, with a last line whose error is `import_ended`.',
  params: fleetPath,
  querystring: importQuery,
  body: importBody,
  response: { 200: importAnswer, ...errorAnswers },
};

const importDevices =
  (
    { config, registry, shards }: Needs,
    listed: DeviceImport,
    imports: Transfers,
  ): Handler<typeof importing> =>
  async (request, reply) => {
    const { params, query } = request;
    const { fleetId } = registry.fleet(params.fleet_id).fleet;
    if (request.body instanceof Readable) {
      const { on_existing: onExisting, from_line: fromLine, resume: isResumed } = query;
      const badLinesMax = config.importBadLinesMax;
      const { type, lines } = listed.answer(request, {
        fleetId,
        onExisting,
        fromLine,
        isResumed,
        badLinesMax,
      });
      return reply.type(type).send(imports.begin(reply, fleetId, lines));
    }
    const { count, tags = [] } = request.body as Static<typeof newDevicesBody>;
    // Pulls the next chunk when the client has read the last; ends the generator when the client disconnects.
    let devices = 0;
    const csv = imports.begin(reply, fleetId, (signal) =>
      generate({ registry, shards }, { fleetId, count, tags }, signal, (stored) => {
        devices += stored;
        request.audited.about.devices = devices;
      }),
    );
    return reply.type('text/csv; charset=utf-8').send(csv);
  };

/**
 * Adds `/fleets/{fleet_id}/devices:import`. A line is sent once its device is on disk. An import that fails midway
 * aborts the transfer, so that no client takes it for complete; the devices of the lines sent are stored.
 */
export function addImportRoute(app: AdminApp, context: Needs): void {
  const imports = new Transfers(app, 'imports', context.config.importsMax);
  app.addContentTypeParser([...importTypes], (_request, payload, done) => done(null, payload));

  routesOf(app)(
    'POST',
    '/fleets/:fleet_id/devices::import',
    'provision',
    importing,
    importDevices(context, new DeviceImport(context), imports),
    { hasLongBody: true },
  );
}
