import { expect, it } from 'vitest';
import { attentionToForwarders } from '../../../src/features/forwarders/attention.ts';
import type { ForwarderStatus } from '../../../src/features/forwarders/forwarder-work.ts';

const forwarder = (more: Partial<ForwarderStatus>): ForwarderStatus => ({
  forwarder: { name: 'warehouse' } as ForwarderStatus['forwarder'],
  state: 'running',
  behind: 0,
  secondsBehind: 0,
  lost: 0,
  deadLetters: 0,
  counts: { delivered: 0, failed: 0, dead: 0, dropped: 0 },
  lastDeliveredAtMs: undefined,
  lastError: undefined,
  nextAttemptAtMs: undefined,
  ...more,
});
const itemsOf = (...all: ForwarderStatus[]) => attentionToForwarders({ list: async () => all })('FLEET001');

it('a forwarder is one item, whatever is wrong with it, the worst first', async () => {
  const lastError = { atMs: 0, msg: 'It answered 500.', recoveredAtMs: undefined };
  const behind = { behind: 65_273, secondsBehind: 3 * 3_600 + 59 };
  const ill = forwarder({ state: 'backing_off', lastError, ...behind, deadLetters: 997 });
  expect(await itemsOf(ill, forwarder({}))).toMatchObject([
    {
      kind: 'forwarder_held',
      also: ['forwarder_behind', 'forwarder_dead_letters'],
      name: 'warehouse',
      count: null,
      sentence:
        'The forwarder warehouse delivers nothing now: It answered 500; it is 3 h, 65,273 records behind; it has 997 dead letters.',
    },
  ]);
});

it('what is lost, and one dead letter, is said in words for one', async () => {
  const [item] = await itemsOf(forwarder({ lost: 1, deadLetters: 1 }));
  expect(item).toMatchObject({
    kind: 'forwarder_lost',
    also: ['forwarder_dead_letters'],
    count: 1,
    sentence:
      'The forwarder warehouse has lost 1 record: retention removed it before it was read; it has 1 dead letter.',
  });
});
