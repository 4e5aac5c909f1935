import { built } from '../built.ts';
import { type Group, group, repeated } from './microbench.ts';
import { payload, schemaText } from './samples.ts';

const { parseDatapoint } = await built<typeof import('../../src/registry/payload.ts')>('registry/payload.js');
const { Schema } = await built<typeof import('../../src/registry/schema.ts')>('registry/schema.js');

/** From the bytes of a datapoint to the word that it matches its schema. */
export async function schema(): Promise<Group> {
  const compiled = new Schema(schemaText);
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
