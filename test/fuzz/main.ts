import { parseArgs } from 'node:util';
import { fuzz } from './fuzzer.ts';

/** `npm run test:fuzz -- --seconds N --seed S --shards K`: prints the seed first, so that a failure can be repeated. */
const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000_000) },
    shards: { type: 'string', default: '2' },
  },
});
const seed = Number(values.seed);
process.stdout.write(`seed ${seed}, ${values.seconds} seconds, ${values.shards} shards\n`);
try {
  const report = await fuzz(Number(values.seconds), seed, Number(values.shards));
  process.stdout.write(`${JSON.stringify(report, undefined, 2)}\n`, () => process.exit(0));
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`, () => process.exit(1));
}
// Left to itself Node 20, after an hour of sockets in every state, never came out of its own cleanup of handles.
