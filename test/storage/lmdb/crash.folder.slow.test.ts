/** Decision D19: `kill -9` under load, as `npm run test:crash` does it for longer. */

import { expect, it } from 'vitest';
import { shards } from '../../harness/server/server.ts';
import { Storm } from '../../storm/storm.ts';

/** A short one; `npm run test:crash` goes on for as long as one likes. */
const rounds = 2;

it('D19: killed again and again under full load, nothing answered is lost, doubled or made up, nor what actions do', async () => {
  const storm = await Storm.start({ shards, seed: Date.now() % 1_000_000, loadMsMin: 300, loadMsMax: 900 });
  for (let round = 0; round < rounds; round += 1) await storm.round();
  await storm.finish();
  const { findings } = storm;
  expect(findings.violations).toEqual([]);
  expect(findings.sum('kill -9')).toBeGreaterThanOrEqual(rounds + 2);
  expect(findings.of('datapoint: answered 201, there exactly once')).toBeGreaterThan(0);
  expect(findings.of('mail: listed after a crash')).toBeGreaterThan(0);
  expect(findings.of('signal: answered 201, its mails there once each')).toBeGreaterThan(0);
});
