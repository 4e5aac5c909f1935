import { type Static, Type } from 'typebox';
import { repeatedParameter, time, timeText } from '../document.ts';

/** Maximum fields of one request. */
const fieldsMax = 8;

export const seriesQuery = Type.Object({
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
export const seriesDocument = Type.Object({
  from: time,
  to: time,
  bucket_ms: Type.Integer(),
  fields: Type.Array(fieldSeriesDocument),
  complete_from: Type.String({ description: 'From this time on, nothing was left out.' }),
  partial: Type.Boolean({ description: 'A bound of the read left out older records, or fields.' }),
});
export type SeriesDocument = Static<typeof seriesDocument>;
