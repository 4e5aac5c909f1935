import { setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import type { SchemaLimits } from '../schemas/check-schema.ts';
import { type TriedSchema, trySchema } from './schema-trial.ts';

/** What the thread is asked; it answers each with a `SchemaTrial`, in order. */
export interface SchemaCheckTask {
  tried: TriedSchema;
  limits: SchemaLimits;
}

/** With too few cores for all, devices come first. */
const niceness = 5;
// On Linux this applies to the thread alone, elsewhere to the process.
if (process.platform === 'linux') setPriority(niceness);

parentPort?.on('message', ({ tried, limits }: SchemaCheckTask) => {
  parentPort?.postMessage(trySchema(tried, limits));
});
