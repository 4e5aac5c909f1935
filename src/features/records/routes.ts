import { Readable } from 'node:stream';
import { Type } from 'typebox';
import {
  type AdminApp,
  type AdminContext,
  deviceOfRequest,
  type Handler,
} from '../../admin-api/request/context.ts';
import { errorAnswers, fleetPath, repeatedParameter } from '../../admin-api/request/documents.ts';
import { parseTime, timeText } from '../../admin-api/request/times.ts';
import { ApiError } from '../../core/errors.ts';
import { type RecordKind, recordKinds } from '../../domain/records/record.ts';
import type { RecordsQuery } from './service.ts';

/** Names or devices that a reader of records asks for by one request. */
const valuesMax = 100;

const linesAnswer = {
  description:
    'A line each: `record_id`, `device_id`, `kind`, `schema`, `stored_at`, `payload` as it was sent, and `cursor`.',
  content: { 'application/x-ndjson': { schema: Type.Unsafe<Readable>({ type: 'string' }) } },
};
const query = Type.Object({
  kind: repeatedParameter(Type.Enum([...recordKinds]), recordKinds.length, 'It is of one of these kinds.'),
  schema: repeatedParameter(
    Type.String({ maxLength: 255 }),
    valuesMax,
    'It has one of these names; of receipts, the name is that of the mail.',
  ),
  device: repeatedParameter(Type.String(), valuesMax, 'It is of one of these devices.'),
  from: Type.Optional(timeText('Stored then or later.')),
  to: Type.Optional(timeText('Stored before.')),
  after: Type.Optional(
    Type.String({
      maxLength: 4_096,
      description: '`cursor` of the last line seen; `latest` for what comes from now on.',
    }),
  ),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 2 ** 48, description: 'Records at most.' })),
  follow: Type.Boolean({ default: false, description: 'Goes on with what is stored later.' }),
  progress: Type.Boolean({
    default: false,
    description: 'Each second and at the end a line of `cursor`, `passed` and `total`: positions of the log.',
  }),
});

/** An absent field is left out. */
function given<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}

const reading = {
  summary: 'Read or follow the records of a fleet',
  description:
    'Datapoints, messages and what else the log keeps of a fleet, as lines of JSON: of each device in order, of different ones about in order of time. A line without a record may come when there is none for a while.',
  params: fleetPath,
  querystring: query,
  response: { 200: linesAnswer, ...errorAnswers },
};

const readRecords =
  (context: AdminContext, open: Set<AbortController>): Handler<typeof reading> =>
  async ({ params, query }, reply) => {
    const { fleet } = context.registry.fleet(params.fleet_id);
    const { kind, schema, device, after, limit, follow, progress } = query;
    const records: RecordsQuery = {
      fleetId: fleet.fleetId,
      follow,
      progress,
      ...given({
        kinds: kind as RecordKind[] | undefined,
        schemas: schema,
        devices: device?.map((device_id) => deviceOfRequest(context, { ...params, device_id })),
        fromMs: parseTime('from', query.from),
        toMs: parseTime('to', query.to),
        after,
        limit,
      }),
    };
    if (reply.raw.destroyed) throw new ApiError('bad_request');
    const controller = new AbortController();
    open.add(controller);
    reply.raw.once('close', () => {
      open.delete(controller);
      controller.abort();
    });
    const lines = await context.records.read(records, controller.signal);
    reply.header('Cache-Control', 'no-store').type('application/x-ndjson');
    return reply.send(Readable.from(lines, { highWaterMark: 1 }));
  };

/** `/fleets/{fleet_id}/records`. A stream that breaks off in the midst of a chunk is not whole. */
export function addRecordRoutes(app: AdminApp, context: AdminContext): void {
  const open = new Set<AbortController>();
  app.addHook('preClose', async () => {
    for (const controller of open) controller.abort();
  });
  app.get(
    '/fleets/:fleet_id/records',
    { config: { scope: 'read' }, schema: reading },
    readRecords(context, open),
  );
}
