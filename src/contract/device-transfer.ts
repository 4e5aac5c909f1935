import { type Static, Type } from 'typebox';
import { deviceFilter, newDevicesBody } from './device.ts';
import { declareRoutes } from './routes/route.ts';

const formats = ['ndjson', 'csv'] as const;
const lines = Type.String();
const exportQuery = Type.Object({
  ...deviceFilter.properties,
  format: Type.Unsafe<(typeof formats)[number]>({ type: 'string', enum: [...formats], default: 'ndjson' }),
  with: Type.Optional(
    Type.Literal('digests', { description: 'Also the SHA-256 of each secret, which an import takes.' }),
  ),
  after: Type.String({
    default: '',
    pattern: '^[A-Za-z0-9]{0,10}$',
    description: 'Continue after this device id; only for an export of all devices, which is in order of id.',
  }),
});
export type DeviceExportQuery = Static<typeof exportQuery>;

/** `/fleets/{fleet_id}/devices:export`. An export that fails midway aborts the transfer. */
export const deviceExportRoutes = declareRoutes({
  'GET /fleets/{fleet_id}/devices:export': {
    scope: 'provision',
    summary: 'Export devices',
    description:
      'Exports all devices of the fleet, or those that match, one per line, in the format that an import takes. In order of device id if there are no filters.',
    query: exportQuery,
    answers: {
      200: {
        description: 'The devices.',
        content: { 'application/x-ndjson': { schema: lines }, 'text/csv': { schema: lines } },
      },
    },
    // An export with digests can create the same devices elsewhere.
    book: ({ query }) => ((query as DeviceExportQuery).with === undefined ? undefined : 'change'),
  },
});

/** Media types of lists of devices. */
export const importTypes = ['text/csv', 'application/x-ndjson'] as const;
const existingPolicies = ['error', 'skip', 'update'] as const;
export type ExistingPolicy = (typeof existingPolicies)[number];
/** Has no schema, because each line is validated by itself. */
const importedLines = Type.Unsafe<unknown>({ description: 'One device per line.' });

/**
 * `/fleets/{fleet_id}/devices:import`. A line is sent once its device is on disk. An import that fails midway aborts the
 * transfer, so that no client takes it for complete; the devices of the lines sent are stored.
 */
export const deviceImportRoutes = declareRoutes({
  'POST /fleets/{fleet_id}/devices:import': {
    scope: 'provision',
    summary: 'Create or import devices',
    description:
      'JSON: creates devices and answers a CSV with one line per device as it is stored, including its secret, which is shown only once. CSV or NDJSON: imports the listed devices and answers the outcome of each line once it is on disk; after importBadLinesMax lines that are no device, or a line of more than 64 KiB, it ends, with a last line whose error is `import_ended`.',
    query: Type.Object({
      on_existing: Type.Unsafe<ExistingPolicy>({
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
    }),
    body: {
      content: {
        'application/json': { schema: newDevicesBody },
        ...Object.fromEntries(importTypes.map((type) => [type, { schema: importedLines }])),
      },
    },
    answers: {
      200: {
        description: 'One line per device.',
        content: Object.fromEntries(importTypes.map((type) => [type, { schema: lines }])),
      },
    },
    hasLongBody: true,
  },
});
