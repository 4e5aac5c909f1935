import { parseArgs } from 'node:util';
import { Storm } from './storm.ts';

/** `npm run test:crash`: the storm by command, for as long as one likes. */
const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '20' },
    shards: { type: 'string', default: '1,3' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});
const rounds = positive('rounds', values.rounds);
const seed = positive('seed', values.seed);
for (const shards of values.shards.split(',').map((text) => positive('shards', text))) {
  console.log(`${rounds} rounds with ${shards} ${shards === 1 ? 'shard' : 'shards'}, seed ${seed}`);
  const storm = await Storm.start({ shards, seed, loadMsMin: 200, loadMsMax: 900 });
  const { findings } = storm;
  for (let round = 1; round <= rounds; round += 1) {
    await storm.round();
    console.log(`round ${round} of ${rounds}: ${findings.sum('kill -9')} kills, ${findings.progress}`);
  }
  await storm.finish();
  findings.printAll();
}

function positive(name: string, text: string | undefined): number {
  const value = Number(text);
  if (Number.isInteger(value) && value > 0) return value;
  console.error(`--${name} takes whole numbers above 0, not ${text}.`);
  process.exit(2);
}
