import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { ConnectionRate } from '../../../src/core/limits/connection-rate.ts';
import { createLog } from '../../../src/core/telemetry/log.ts';

const log = createLog('fatal');
const limit = 'connectionsPerSecondPerAddressMax';

/** Keeps this thread busy for longer than its time is measured over. */
async function work(): Promise<void> {
  const endMs = performance.now() + 300;
  while (performance.now() < endMs);
}

/** Connections let in of so many that come at once. */
function passing(rate: ConnectionRate, address: string, times: number): number {
  return Array.from({ length: times }, () => rate.isExceeded(() => address)).filter((is) => !is).length;
}

it('asks for no address while the thread is not busy', async () => {
  const rate = new ConnectionRate({ limit, perSecondMax: () => 1, log });
  for (let times = 0; times < 3; times += 1) {
    // However long this takes: to wait for a processor is not to be busy.
    await sleep(150);
    expect(rate.isExceeded(() => expect.unreachable())).toBe(false);
  }
});

it('lets in of an address what its rate allows while the thread is busy, and of another one too', async () => {
  // One passes, and the next long after this has run.
  let perSecondMax = 0.001;
  const rate = new ConnectionRate({ limit, perSecondMax: () => perSecondMax, log });
  await work();
  expect(passing(rate, '192.0.2.1', 1_000)).toBe(1);
  expect(passing(rate, '192.0.2.2', 1_000)).toBe(1);
  perSecondMax = 0;
  expect(passing(rate, '192.0.2.1', 1_000)).toBe(1_000);
});

it('limits nobody whose connection has no address any more', async () => {
  const rate = new ConnectionRate({ limit, perSecondMax: () => 1, log });
  await work();
  expect(passing(rate, '', 100)).toBe(100);
});

it('forgets the address that connected longest ago when it has too many', async () => {
  const rate = new ConnectionRate({ limit, perSecondMax: () => 0.001, log });
  await work();
  expect([passing(rate, 'first', 2), passing(rate, 'second', 2)]).toEqual([1, 1]);
  for (let other = 0; other < 4_095; other += 1) passing(rate, `other ${other}`, 1);
  expect([passing(rate, 'second', 1), passing(rate, 'first', 1)]).toEqual([0, 1]);
});
