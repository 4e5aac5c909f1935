import { type Static, Type } from 'typebox';
import { repeatedParameter, time, timeText } from '../document.ts';
import { declareRoutes } from '../routes/route.ts';

/** Maximum fields of one request. */
const fieldsMax = 8;

const seriesQuery = Type.Object({
  schema: Type.String({ maxLength: 255, description: 'Datapoints of this schema.' }),
  fields: repeatedParameter(
    Type.String({ maxLength: 256, pattern: '^(/[^/]*){1,8}$' }),
    fieldsMax,
    'JSON Pointers of numbers, like /celsius; absent: all numbers at the top level, up to 8.',
  ),
  from: Type.Optional(timeText('Begin; absent: a day before the end.')),
  to: Type.Optional(timeText('End, exclusive; absent: now.')),
  points: Type.Integer({ minimum: 1, maximum: 1_000, default: 300, description: 'Maximum buckets.' }),
});

const column = Type.Array(Type.Number());
const fieldSeriesDocument = Type.Object({
  field: Type.String({ description: 'JSON Pointer.' }),
  buckets: Type.Array(Type.Integer(), {
    description: 'Numbers of the buckets that have values: each begins at from + number × bucket_ms.',
  }),
  min: column,
  mean: column,
  max: column,
  count: Type.Array(Type.Integer()),
});
/** A chart of the numbers in a device's datapoints, by columns. */
const seriesDocument = Type.Object({
  from: time,
  to: time,
  bucket_ms: Type.Integer(),
  fields: Type.Array(fieldSeriesDocument),
  complete_from: Type.String({ description: 'From this time on, nothing was left out.' }),
  partial: Type.Boolean({ description: 'A bound of the read left out older records, or fields.' }),
});
export type SeriesDocument = Static<typeof seriesDocument>;

/** `…/devices/{device_id}/series`. */
export const seriesRoutes = declareRoutes({
  'GET /fleets/{fleet_id}/devices/{device_id}/series': {
    scope: 'read',
    summary: 'Chart the numbers in the datapoints of a device',
    description:
      'Minimum, mean, maximum and count by bucket of time, computed from its records in the log, newest first: up to 64 MiB of them. A record counts at its recorded_at, if it has one, whenever it was stored.',
    query: seriesQuery,
    answers: { 200: seriesDocument },
  },
});
