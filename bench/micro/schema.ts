import { parseDatapoint } from '../../src/declarations/schemas/payload.ts';
import { Schema, unwatched } from '../../src/declarations/schemas/schema.ts';
import { type Group, group, repeated } from './microbench.ts';
import { payload, schemaText } from './samples.ts';

/** Measures from the bytes of a datapoint to the word that it matches its schema. */
export async function schema(): Promise<Group> {
  const compiled = new Schema(schemaText, unwatched);
  const datapoint = parseDatapoint(payload);
  const conditions = { payloadBytes: payload.length };
  return group(
    { ...repeated('datapoint parsed', () => parseDatapoint(payload)), conditions },
    {
      ...repeated('datapoint held against its schema', () => compiled.check(datapoint, payload.length)),
      conditions,
    },
  );
}
