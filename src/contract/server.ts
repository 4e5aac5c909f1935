import { type Static, Type } from 'typebox';
import { closedObject, jsonObject, nullable, time } from './document.ts';
import { declareRoutes } from './routes/route.ts';

export const healthDocument = Type.Object({ ok: Type.Boolean() });
export const notReadyDocument = Type.Object({
  error: Type.String(),
  msg: Type.String(),
  reasons: Type.Array(Type.Object({ reason: Type.String(), msg: Type.String() })),
});

const holdDocument = Type.Object({
  held: Type.Boolean(),
  since: nullable('string', { description: 'When it began; null if it is not held.' }),
});
const releaseDocument = Type.Object({
  released: Type.Boolean({ description: 'False if the server was not held.' }),
});

const count = Type.Integer({ minimum: 0 });
/** Current activity of the server. Counts are cumulative: the difference of two answers gives rates. */
const topDocument = Type.Object({
  time: Type.String(),
  reasons: Type.Array(Type.String(), { description: 'Why the server is not ready; empty if it is.' }),
  held: Type.Boolean({ description: 'Whether what acts by itself waits for a release.' }),
  connections: count,
  streams: count,
  cpu_seconds: Type.Number({ description: 'CPU time of this process since it started, all its threads.' }),
  memory_bytes: Type.Integer({ description: 'Resident memory of this process.' }),
  disk_free_bytes: nullable('integer', {
    description: "Free space on the data folder's disk; null on databases, or where diskFreeBytesMin is 0.",
  }),
  requests: Type.Array(
    Type.Object(
      { route: Type.String(), answered: count, failed: count },
      { description: 'Since the server started.' },
    ),
  ),
  latency: Type.Object({
    bounds_seconds: Type.Array(Type.Number()),
    counts: Type.Array(count, {
      description: 'Since the server started, by bucket; the last for values beyond all bounds.',
    }),
  }),
  shards: Type.Array(
    Type.Object({
      shard: count,
      queue: count,
      commits: count,
      writes: count,
      refused: count,
      bytes: count,
      log_bytes: count,
      devices: count,
      mails: count,
    }),
  ),
  talkers: Type.Array(
    Type.Object({ fleet_id: Type.String(), device_id: Type.String(), requests_per_second: Type.Number() }),
  ),
});
export type TopDocument = Static<typeof topDocument>;

const serverHourDocument = Type.Object({
  time,
  minutes: Type.Array(
    Type.Object({
      ended_at: time,
      seconds: Type.Number({ description: 'How long it was; of the last one, that has passed of it.' }),
      requests: count,
      failed: Type.Integer({ minimum: 0, description: 'Those of them that were answered with 5xx.' }),
      p99_seconds: Type.Unsafe<number | null>({
        type: ['number', 'null'],
        description:
          'Upper bound of the time that 99 % were answered within, at most the largest bound of `latency`; null if none was.',
      }),
    }),
    { description: 'The last 60, the oldest first; fewer until this node has run for an hour.' },
  ),
});
export type ServerHourDocument = Static<typeof serverHourDocument>;

const serverDocument = Type.Object({
  version: Type.String(),
  program_versions: Type.Array(Type.String(), {
    description: 'Versions of the program on all nodes of the store: more than one amid a rolling upgrade.',
  }),
  node_version: Type.String(),
  started_at: time,
  shards: Type.Integer(),
  certificates: Type.Array(Type.Object({ listener: Type.String(), expires_at: time })),
  configuration: Type.Array(
    Type.Object({
      key: Type.String(),
      value: Type.Union([Type.Integer(), Type.Boolean(), Type.String(), jsonObject], {
        description: 'In use now; passwords are masked.',
      }),
      source: Type.Enum(['default', 'file', 'environment', 'flag']),
      environment: Type.String({ description: 'Its environment variable.' }),
      description: Type.String(),
      reloadable: Type.Boolean({ description: 'Whether SIGHUP changes it; else a restart.' }),
      pending: Type.Boolean({ description: 'Whether it was given another value that waits for a restart.' }),
    }),
  ),
});
export type ServerDocument = Static<typeof serverDocument>;

const newBackupBody = closedObject({
  folder: Type.Optional(
    Type.String({
      description:
        "Absolute path on the server's machine, of a folder that is empty or does not exist. Absent: one under the time in `backupFolder`.",
      pattern: '^/[^\\u0000]*$',
      maxLength: 4_096,
    }),
  ),
  keep: Type.Optional(
    Type.Integer({
      description:
        'Whole backups under their time to keep in `backupFolder`, with this one: older ones of this data folder are removed once this one is whole. Not with `folder`.',
      minimum: 1,
      maximum: 10_000,
    }),
  ),
});
const backupDocument = Type.Object({
  folder: Type.String(),
  state: Type.Union([Type.Literal('running'), Type.Literal('done'), Type.Literal('failed')]),
  started_at: time,
  ended_at: nullable('string'),
  bytes: Type.Integer(),
  bytes_total: Type.Integer({ description: 'Approximate while the state is running.' }),
  reason: nullable('string', { description: 'Why it failed, or why older ones could not be removed.' }),
  removed: Type.Integer({ description: 'Older backups that were removed after it: `keep`.' }),
});
export type BackupDocument = Static<typeof backupDocument>;

/** `/backup`: starts a backup and reports its progress, as it takes longer than a request should. */
export const backupRoutes = declareRoutes({
  'POST /backup': {
    scope: 'admin',
    summary: 'Start a backup',
    body: newBackupBody,
    answers: { 202: backupDocument },
  },
  'GET /backup': {
    scope: 'admin',
    summary: 'Show the backup under way, or the last one',
    answers: { 200: backupDocument },
  },
});

/** `/device-endpoint`: what a device needs to find this server and to trust it. */
export const deviceEndpointRoutes = declareRoutes({
  'GET /device-endpoint': {
    scope: 'any',
    summary: 'Say where devices find this server',
    description:
      '`publicUrl` of the configuration; without it, what the device API listens on, by a name of its certificate: that of this request, if it is one.',
    answers: {
      200: Type.Object({
        url: Type.String({ description: 'Before the `/v1/…` of the device API.' }),
        ca_file: nullable('string', {
          description:
            "File on the server's machine with the certificate that a device has to be given to trust; null where it comes from an authority that everybody trusts, or is not of that URL.",
        }),
      }),
    },
  },
});

/** `/top`, for `fleetpost top`, and `/top/hour`, for the console. */
export const topRoutes = declareRoutes({
  'GET /top': {
    scope: 'read',
    summary: 'Show the current activity of the server',
    answers: { 200: topDocument },
  },
  'GET /top/hour': {
    scope: 'read',
    summary: 'Show the last hour of the server',
    description: 'Requests of devices that this node answered, by minute. In memory, so from its start on.',
    answers: { 200: serverHourDocument },
  },
});

export const serverRoutes = declareRoutes({
  'GET /server': {
    scope: 'admin',
    summary: 'Show the server: version, certificates, configuration',
    description:
      'Each value of the configuration in use, with its source. Passwords in addresses are masked.',
    answers: { 200: serverDocument },
  },
});

/** `/hold`: begins with `serve --paused` or `restore --quiet`, and ends here. */
export const holdRoutes = declareRoutes({
  'GET /hold': {
    scope: 'read',
    summary: 'Show whether the server is held',
    description:
      'A held server serves devices, but its forwarders, actions and broadcasts wait, and delayed mail stays delayed.',
    answers: { 200: holdDocument },
  },
  'DELETE /hold': {
    scope: 'admin',
    summary: 'Release a held server',
    description: 'On databases this releases all nodes. Idempotent.',
    answers: { 200: releaseDocument },
  },
});
