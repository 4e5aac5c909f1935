import { Readable } from 'node:stream';
import { Type } from 'typebox';
import { type AdminApp, deviceOfRequest, type Handler } from '../../admin-api/request/context.ts';
import { routesOf } from '../../admin-api/request/route.ts';
import { parseTime } from '../../admin-api/request/times.ts';
import { errorAnswers, fleetPath, pageLimit, repeatedParameter, timeText } from '../../contract/document.ts';
import { latestRecordsDocument, recordKind } from '../../contract/record.ts';
import { ApiError } from '../../core/errors.ts';
import type { Registry } from '../../declarations/registry.ts';
import type { WatchedDevices } from '../../domain/devices/watched-devices.ts';
import { recordOnOneLine } from './record-line.ts';
import type { RecordService, RecordsQuery } from './service.ts';

interface Needs {
  records: RecordService;
  registry: Registry;
  watched: WatchedDevices;
}

/** Schemas or devices in the filter of one request. */
const valuesMax = 100;

const linesAnswer = {
  description:
    'NDJSON: `record_id`, `device_id`, `kind`, `schema`, `stored_at`, `recorded_at` if the device gave one, `payload` as it was sent, and `cursor`.',
  content: { 'application/x-ndjson': { schema: Type.Unsafe<Readable>({ type: 'string' }) } },
};
const filter = {
  kind: repeatedParameter(recordKind, recordKind.enum.length, 'Records of these kinds.'),
  schema: repeatedParameter(
    Type.String({ maxLength: 255 }),
    valuesMax,
    'Records of these schemas; for receipts, the name of the mail.',
  ),
  device: repeatedParameter(Type.String(), valuesMax, 'Records of these devices.'),
};
const query = Type.Object({
  ...filter,
  from: Type.Optional(timeText('Records stored at this time or later.')),
  to: Type.Optional(timeText('Records stored before this time.')),
  after: Type.Optional(
    Type.String({
      maxLength: 4_096,
      description: '`cursor` of the last line seen; `latest` for new records only.',
    }),
  ),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 2 ** 48, description: 'Maximum number of records.' }),
  ),
  follow: Type.Boolean({ default: false, description: 'Keep the stream open for new records.' }),
  max_per_second: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1_000_000,
      description:
        'With follow: skip records beyond so many a second, for a reader that only looks on. Once a second, a line has `skipped`, how many since the last, and `cursor`.',
    }),
  ),
  progress: Type.Boolean({
    default: false,
    description:
      'Add a line with `cursor`, `passed` and `total` (positions of the log) each second and at the end.',
  }),
});

/** Removes undefined members, for exactOptionalPropertyTypes. */
function withoutUndefined<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}

const reading = {
  summary: 'Read or follow the records of a fleet',
  description:
    'Datapoints, messages and other records of a fleet as NDJSON: in order per device, roughly in order of time across devices. Empty lines keep an idle stream open.',
  params: fleetPath,
  querystring: query,
  response: { 200: linesAnswer, ...errorAnswers },
};

const readRecords =
  (context: Needs, open: Set<AbortController>): Handler<typeof reading> =>
  async ({ params, query }, reply) => {
    const { fleet } = context.registry.fleet(params.fleet_id);
    const { kind, schema, device, after, limit, follow, progress, max_per_second: perSecondMax } = query;
    if (perSecondMax !== undefined && !follow) {
      throw new ApiError('bad_request', { msg: 'max_per_second needs follow=true.' });
    }
    const records: RecordsQuery = {
      fleetId: fleet.fleetId,
      follow,
      progress,
      ...withoutUndefined({
        kinds: kind,
        schemas: schema,
        devices: device?.map((device_id) => deviceOfRequest(context, { ...params, device_id })),
        fromMs: parseTime('from', query.from),
        toMs: parseTime('to', query.to),
        after,
        limit,
        perSecondMax,
      }),
    };
    if (reply.raw.destroyed) throw new ApiError('bad_request');
    const controller = new AbortController();
    open.add(controller);
    const [watched, ...others] = records.devices ?? [];
    const leave =
      follow && watched !== undefined && others.length === 0 ? context.watched.watch(watched) : undefined;
    reply.raw.once('close', () => {
      open.delete(controller);
      leave?.();
      controller.abort();
    });
    const lines = await context.records.read(records, controller.signal);
    reply.header('Cache-Control', 'no-store').type('application/x-ndjson');
    return reply.send(Readable.from(lines, { highWaterMark: 1 }));
  };

const readingLatest = {
  summary: 'List the newest records of a fleet',
  description:
    'Newest first. Reads the logs backwards, up to 8 MiB of records whether they match or not: `partial` says that older ones may match.',
  params: fleetPath,
  querystring: Type.Object({
    ...filter,
    per_schema: Type.Boolean({ default: false, description: 'Only the newest record of each schema.' }),
    limit: pageLimit,
  }),
  // Describes the shape of the text.
  response: { 200: Type.Unsafe<string>(latestRecordsDocument), ...errorAnswers },
};

/** Each record is on a line of its own, its payload the text that was sent (D11). */
const readLatestRecords =
  (context: Needs): Handler<typeof readingLatest> =>
  async ({ params, query: { kind, schema, device, per_schema, limit } }, reply) => {
    const { fleet } = context.registry.fleet(params.fleet_id);
    const { records, isPartial } = await context.records.latest({
      fleetId: fleet.fleetId,
      isPerSchema: per_schema,
      limit,
      ...withoutUndefined({
        kinds: kind,
        schemas: schema,
        devices: device?.map((device_id) => deviceOfRequest(context, { ...params, device_id })),
      }),
    });
    const lines = records.map(recordOnOneLine).join(',\n');
    return reply.type('application/json').send(`{"items":[\n${lines}\n],"partial":${isPartial}}`);
  };

/** `/fleets/{fleet_id}/records`. A stream that ends within a chunk is incomplete. */
export function addRecordRoutes(app: AdminApp, context: Needs): void {
  const route = routesOf(app);
  const open = new Set<AbortController>();
  app.addHook('preClose', async () => {
    for (const controller of open) controller.abort();
  });
  route('GET', '/fleets/:fleet_id/records', 'read', reading, readRecords(context, open));
  route('GET', '/fleets/:fleet_id/records::latest', 'read', readingLatest, readLatestRecords(context));
}
