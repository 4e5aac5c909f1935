/** Hostile trial: spoilt requests and handshakes, as `npm run test:fuzz` sends them for longer. */

import { expect, it } from 'vitest';
import { fuzz } from '../../fuzz/fuzzer.ts';
import { shards } from '../../harness/server/server.ts';

/** Each run sends the same: other seeds, and for longer, by `npm run test:fuzz`. */
const seconds = 8;

it('spoilt requests and handshakes disturb nobody, leave nothing and store nothing', async () => {
  const { answers, bursts } = await fuzz(seconds, 1, shards);
  expect(bursts).toBeGreaterThan(2);
  // Some got through the parser, and some did not: else there is nothing tested.
  expect(Object.keys(answers)).toEqual(expect.arrayContaining(['200', '201', '400', '505']));
});
