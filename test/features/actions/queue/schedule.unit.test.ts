import { expect, it } from 'vitest';
import { ThreadSchedule } from '../../../../src/features/actions/queue/schedule.ts';

/** A schedule of one thread, and the order in which work has ended. */
function startTurns() {
  const turns: ThreadSchedule = new ThreadSchedule(1, () => turns.next([]));
  const order: string[] = [];
  const ask = (fleetId: string, token: string, name: string, subject?: string) =>
    turns.take(fleetId, { token }, async () => void order.push(name), subject);
  return { turns, order, ask };
}

it('fleets take turns, and so do the tokens of a fleet', async () => {
  const { order, ask } = startTurns();
  const asked = [
    ...['a1', 'a2', 'a3', 'a4'].map((name) => ask('A', 'one', name)),
    ask('A', 'two', 'A2'),
    ask('B', 'one', 'b1'),
    ask('B', 'one', 'b2'),
  ];
  await Promise.all(asked);
  expect(order).toEqual(['a1', 'b1', 'A2', 'b2', 'a2', 'a3', 'a4']);
});

it('newer work takes the place of older work on its subject, of the same token and only while it waits', async () => {
  const { order, ask } = startTurns();
  const asked = await Promise.allSettled([
    ask('A', 'one', 'under way', 'x'),
    ask('A', 'one', 'replaced', 'x'),
    ask('A', 'one', 'without a subject'),
    ask('A', 'one', 'on something else', 'y'),
    ask('A', 'two', 'of another token', 'x'),
    ask('A', 'one', 'newer', 'x'),
  ]);
  expect(asked.map((one) => (one.status === 'rejected' ? one.reason.code : 'done'))).toEqual([
    'done',
    'replaced',
    'done',
    'done',
    'done',
    'done',
  ]);
  // In the place of what it replaces.
  expect(order).toEqual(['under way', 'of another token', 'newer', 'without a subject', 'on something else']);
});

it('what waits starts when the turns are closed, and so does what comes later', async () => {
  const { turns, order, ask } = startTurns();
  const asked = [ask('A', 'one', 'first'), ask('A', 'one', 'second')];
  turns.close();
  await Promise.all([...asked, ask('B', 'one', 'later')]);
  expect(order.toSorted()).toEqual(['first', 'later', 'second']);
});
