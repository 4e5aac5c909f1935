import { setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import type { SchemaLimits } from '../schemas/check-schema.ts';
import { type TriedSchema, trySchema } from './schema-trial.ts';

/** Request to the thread, which answers each with a `SchemaTrial`, in order. */
export interface SchemaCheckTask {
  tried: TriedSchema;
  limits: SchemaLimits;
}

/** Priority below that of devices, which come first with too few cores for all. */
const niceness = 5;
// On Linux this applies to the thread alone, elsewhere to the process.
if (process.platform === 'linux') setPriority(niceness);

parentPort?.on('message', ({ tried, limits }: SchemaCheckTask) => {
  parentPort?.postMessage(trySchema(tried, limits));
});
