import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  advance,
  isQueueList,
  queueNumberMax,
  queuePosition,
  queuesMax,
} from '../../../src/domain/sync/device-queues.ts';

const none = Buffer.alloc(0);
const movedBy = (...steps: [name: string, seq: number, count: number][]): Buffer =>
  steps.reduce<Buffer>(
    (queues, [name, seq, count]) => advance(queues, { name, seq }, count).queues ?? queues,
    none,
  );

describe('D30: the queues of a device', () => {
  it('what is known of a sync is its front', () => {
    const queues = movedBy(['q', 1, 10]);
    const knownOf = (seq: number, count: number): number => advance(queues, { name: 'q', seq }, count).known;
    expect([knownOf(1, 10), knownOf(1, 12), knownOf(8, 5), knownOf(11, 5), knownOf(20, 5)]).toEqual([
      10, 10, 3, 0, 0,
    ]);
    expect(advance(queues, { name: 'other', seq: 1 }, 3).known).toBe(0);
  });

  it('nothing changes where nothing is new', () => {
    const queues = movedBy(['q', 1, 10]);
    for (const [seq, count] of [
      [1, 10],
      [4, 2],
      [11, 0],
      [1_000, 0],
    ] as const) {
      const step = advance(queues, { name: 'q', seq }, count);
      expect(step).toMatchObject({ position: { storedTo: 10, skipped: 0 }, queues: undefined });
    }
  });

  it('the largest numbers are kept', () => {
    const queues = movedBy(['q', queueNumberMax, 1]);
    expect(queuePosition(queues, 'q')).toEqual({ storedTo: queueNumberMax, skipped: queueNumberMax - 1 });
    expect(isQueueList(queues)).toBe(true);
  });

  it('any moves leave a list that is sound, of the queues that moved last', () => {
    const name = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', '_-9'.repeat(5));
    const move = fc.tuple(name, fc.integer({ min: 1, max: 30 }), fc.nat({ max: 9 }));
    fc.assert(
      fc.property(fc.array(move, { maxLength: 30 }), (moves) => {
        const queues = movedBy(...moves);
        expect(isQueueList(queues)).toBe(true);
        expect(queues.length).toBeLessThanOrEqual(queuesMax * 29);
      }),
    );
  });

  it('what was damaged is no list', () => {
    const queues = movedBy(['q', 1, 10], ['r', 5, 1]);
    for (let length = 1; length < queues.length; length += 1) {
      // A cut behind the first queue leaves a list of one.
      expect(isQueueList(queues.subarray(0, length))).toBe(length === 14);
    }
    const list = Buffer.concat(Array.from({ length: 5 }, (_, n) => movedBy([`q${n}`, 1, 1])));
    expect(isQueueList(list)).toBe(false);
    expect(isQueueList(Buffer.concat([queues, queues]))).toBe(false);
  });
});
