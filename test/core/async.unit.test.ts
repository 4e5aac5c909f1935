import { type AddressInfo, connect, createServer } from 'node:net';
import { setTimeout as elapse } from 'node:timers/promises';
import { expect, it } from 'vitest';
import {
  arrivals,
  Batcher,
  Condition,
  EventLoopBudget,
  KeyedMutex,
  KeyedSingleFlight,
  Mutex,
  SingleFlight,
  sleep,
  yieldToEventLoop,
} from '../../src/core/async.ts';

/** Settled from outside. */
class Gate<T = void> {
  open!: (value: T) => void;
  break!: (error: Error) => void;
  readonly passed = new Promise<T>((resolve, reject) => {
    this.open = resolve;
    this.break = reject;
  });
}

const shortly = 20;

it('sleeps for its time, or until the signal, and never throws', async () => {
  const begunMs = performance.now();
  await sleep(shortly);
  expect(performance.now() - begunMs).toBeGreaterThanOrEqual(shortly - 1);
  const ending = new AbortController();
  const sleeping = sleep(600_000, ending.signal);
  ending.abort();
  await sleeping;
  await sleep(600_000, ending.signal);
  await sleep(0);
  await sleep(-600_000);
  expect(performance.now() - begunMs).toBeLessThan(10_000);
});

it('goes on in another turn of the event loop', async () => {
  const order: string[] = [];
  setImmediate(() => order.push('an earlier one'));
  await yieldToEventLoop();
  order.push('behind it');
  expect(order).toEqual(['an earlier one', 'behind it']);
});

it('mutex: one after another in their order, and each has its own outcome', async () => {
  const mutex = new Mutex();
  const log: string[] = [];
  const gates = [new Gate<number>(), new Gate<number>(), new Gate<number>()];
  const tasks = gates.map((gate, index) =>
    mutex.run(async () => {
      log.push(`begin ${index}`);
      return gate.passed.finally(() => log.push(`end ${index}`));
    }),
  );
  const outcomes = Promise.allSettled(tasks);
  gates[2]?.open(2);
  await elapse(shortly);
  expect(log).toEqual(['begin 0']);
  gates[0]?.open(0);
  gates[1]?.break(new Error('one of them'));
  expect(await outcomes).toEqual([
    { status: 'fulfilled', value: 0 },
    { status: 'rejected', reason: new Error('one of them') },
    { status: 'fulfilled', value: 2 },
  ]);
  expect(log).toEqual(['begin 0', 'end 0', 'begin 1', 'end 1', 'begin 2', 'end 2']);
});

it('mutex: one that throws at once does not hold up the next, and is settled', async () => {
  const mutex = new Mutex();
  await mutex.settled();
  const failing = mutex.run((): Promise<never> => {
    throw new Error('at once');
  });
  const settled = mutex.settled();
  await expect(failing).rejects.toThrow('at once');
  await settled;
  expect(await mutex.run(async () => 'next')).toBe('next');
});

it('keyed mutex: waits for its own key alone, and goes on behind a failure', async () => {
  const mutex = new KeyedMutex<string>();
  const gate = new Gate<void>();
  const log: string[] = [];
  const note = (name: string) => async (): Promise<void> => void log.push(name);
  const first = mutex.run('a', () => gate.passed);
  const second = mutex.run('a', note('a'));
  await mutex.run('b', note('b'));
  expect(log).toEqual(['b']);
  gate.break(new Error('first'));
  await expect(first).rejects.toThrow('first');
  await second;
  expect(log).toEqual(['b', 'a']);
});

it('single flight: whoever asks meanwhile shares the outcome, and the next begins anew', async () => {
  const gates: Gate<number>[] = [];
  const flight = new SingleFlight(() => {
    const gate = new Gate<number>();
    gates.push(gate);
    return gate.passed;
  });
  await flight.settled();
  const [one, other] = [flight.run(), flight.run()];
  expect(gates).toHaveLength(1);
  gates[0]?.open(1);
  expect(await Promise.all([one, other])).toEqual([1, 1]);
  const failed = Promise.allSettled([flight.run(), flight.run()]);
  const settled = flight.settled();
  gates[1]?.break(new Error('failed'));
  await settled;
  expect((await failed).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  const last = flight.run();
  gates[2]?.open(3);
  expect(await last).toBe(3);
  expect(gates).toHaveLength(3);
});

it('single flight: what is queued behind the last look of its task, before that has settled, is not left', async () => {
  const queue = [1];
  const behindLook = (): void => {
    queue.push(2);
    void flight.run();
  };
  const flight = new SingleFlight(
    async () => {
      while (queue.length > 0) if (queue.shift() === 1) queueMicrotask(behindLook);
    },
    () => queue.length > 0,
  );
  await flight.run();
  expect(queue).toEqual([]);
});

it('keyed single flight: each key has its own', async () => {
  const flights = new KeyedSingleFlight<string, string>();
  const gate = new Gate<string>();
  let begun = 0;
  const task = (): Promise<string> => {
    begun += 1;
    return gate.passed;
  };
  const all = [flights.run('a', task), flights.run('a', task), flights.run('b', task)];
  expect(begun).toBe(2);
  gate.open('done');
  expect(await Promise.all(all)).toEqual(['done', 'done', 'done']);
  await flights.run('a', task);
  expect(begun).toBe(3);
});

it('waiters: one is woken at a time, the first whose condition holds, or all', async () => {
  const waiters = new Condition();
  const { signal } = new AbortController();
  const woken: string[] = [];
  const wait = (name: string, when?: () => boolean): Promise<void> =>
    waiters.wait(signal, when === undefined ? {} : { when }).then(() => void woken.push(name));
  let isReady = false;
  const all = [wait('a', () => isReady), wait('b'), wait('c'), wait('d', () => false), wait('e')];
  expect(waiters.size).toBe(5);
  waiters.wakeOne();
  await yieldToEventLoop();
  expect(woken).toEqual(['b']);
  isReady = true;
  waiters.wakeOne();
  await yieldToEventLoop();
  expect(woken).toEqual(['b', 'a']);
  waiters.wakeAll();
  await Promise.all(all);
  expect(woken).toEqual(['b', 'a', 'c', 'd', 'e']);
  expect(waiters.size).toBe(0);
  waiters.wakeOne();
});

it('waiters: wait no longer than their time or their signal', async () => {
  const waiters = new Condition();
  const ending = new AbortController();
  await waiters.wait(ending.signal, { msMax: shortly, when: () => false });
  const waiting = waiters.wait(ending.signal, { msMax: 600_000 });
  expect(waiters.size).toBe(1);
  ending.abort();
  await waiting;
  await waiters.wait(ending.signal);
  expect(waiters.size).toBe(0);
});

interface Batch {
  items: readonly number[];
  gate: Gate<readonly number[]>;
}

/** A batcher whose batches are answered by hand. */
function batcherOf(options: Partial<ConstructorParameters<typeof Batcher<number, number>>[0]> = {}): {
  batcher: Batcher<number, number>;
  batches: Batch[];
} {
  const batches: Batch[] = [];
  const batcher = new Batcher<number, number>({
    run: (items) => {
      const gate = new Gate<readonly number[]>();
      batches.push({ items, gate });
      return gate.passed;
    },
    begin: setImmediate,
    underWayMax: 1,
    itemsMax: 3,
    ...options,
  });
  return { batcher, batches };
}

function answer({ items, gate }: Batch): void {
  gate.open(items.map((item) => item * 10));
}

const itemsOf = (batches: readonly Batch[]): (readonly number[])[] => batches.map(({ items }) => items);

/** Answers every batch until there is nothing more. */
async function answerAll(batches: Batch[], batcher: Batcher<number, number>): Promise<void> {
  for (let next = 0; !batcher.isIdle; await yieldToEventLoop()) {
    for (; next < batches.length; next += 1) answer(batches[next] as Batch);
  }
}

it('batcher: what comes in one turn goes together, up to so many, and each gets its own outcome', async () => {
  const { batcher, batches } = batcherOf();
  const outcomes = Promise.all([1, 2, 3, 4].map((item) => batcher.add(item)));
  expect(batches).toHaveLength(0);
  await answerAll(batches, batcher);
  expect(await outcomes).toEqual([10, 20, 30, 40]);
  expect(itemsOf(batches)).toEqual([[1, 2, 3], [4]]);
});

it('batcher: begins at once where it is told to, and gathers what comes while it is busy', async () => {
  const { batcher, batches } = batcherOf({ begin: (go) => go() });
  const outcomes = Promise.all([1, 2, 3].map((item) => batcher.add(item)));
  expect(itemsOf(batches)).toEqual([[1]]);
  await answerAll(batches, batcher);
  expect(await outcomes).toEqual([10, 20, 30]);
  expect(itemsOf(batches)).toEqual([[1], [2, 3]]);
});

it('batcher: no more batches at once than it may', async () => {
  const { batcher, batches } = batcherOf({ underWayMax: 2 });
  const outcomes: Promise<number>[] = [];
  for (const item of [1, 2, 3, 4]) {
    outcomes.push(batcher.add(item));
    await yieldToEventLoop();
  }
  expect(itemsOf(batches)).toEqual([[1], [2]]);
  answer(batches[1] as Batch);
  await yieldToEventLoop();
  expect(itemsOf(batches)).toEqual([[1], [2], [3, 4]]);
  await answerAll(batches, batcher);
  expect(await Promise.all(outcomes)).toEqual([10, 20, 30, 40]);
});

it('batcher: bounds the bytes of a batch, but for its first item', async () => {
  const { batcher, batches } = batcherOf({ itemsMax: 10, bytes: { of: (item) => item, max: 10 } });
  const outcomes = Promise.all([4, 6, 1, 50, 9, 1].map((item) => batcher.add(item)));
  await answerAll(batches, batcher);
  expect(await outcomes).toHaveLength(6);
  expect(itemsOf(batches)).toEqual([[4, 6], [1], [50], [9, 1]]);
});

it('batcher: refuses at once what is too much, and what has waited too long', async () => {
  const refusal = (reason: string): Error => new Error(reason);
  const { batcher, batches } = batcherOf({ waiting: { itemsMax: 2, msMax: shortly, refusal } });
  const first = batcher.add(1);
  await yieldToEventLoop();
  const late = Promise.allSettled([batcher.add(2), batcher.add(3)]);
  await expect(batcher.add(4)).rejects.toThrow('full');
  await elapse(2 * shortly);
  answer(batches[0] as Batch);
  expect(await first).toBe(10);
  expect(await late).toEqual([
    { status: 'rejected', reason: new Error('late') },
    { status: 'rejected', reason: new Error('late') },
  ]);
  expect(itemsOf(batches)).toEqual([[1]]);
  expect(batcher.isIdle).toBe(true);
  const next = batcher.add(5);
  await answerAll(batches, batcher);
  expect(await next).toBe(50);
});

it('batcher: what a batch throws all of it get, and none of the next', async () => {
  const { batcher, batches } = batcherOf({ itemsMax: 2 });
  const outcomes = Promise.allSettled([1, 2, 3].map((item) => batcher.add(item)));
  await yieldToEventLoop();
  batches[0]?.gate.break(new Error('failed'));
  await yieldToEventLoop();
  answer(batches[1] as Batch);
  expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled']);
});

it('batcher: is drained when nothing waits or is under way', async () => {
  const { batcher, batches } = batcherOf({ itemsMax: 1 });
  await batcher.drained();
  const outcomes = Promise.all([1, 2].map((item) => batcher.add(item)));
  let isDrained = false;
  const drained = batcher.drained().then(() => {
    isDrained = true;
  });
  await yieldToEventLoop();
  answer(batches[0] as Batch);
  await yieldToEventLoop();
  expect(isDrained).toBe(false);
  answer(batches[1] as Batch);
  await drained;
  expect(await outcomes).toEqual([10, 20]);
});

it('event loop budget: pieces share a turn, owners take turns, and none holds up what has arrived', async () => {
  const budget = new EventLoopBudget();
  const done: string[] = [];
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const work = async (owner: string, pieces: number): Promise<void> => {
    await Promise.all(
      Array.from({ length: pieces }, async () => {
        await budget.take(owner);
        // More microtasks than one, as a handler has.
        for (let step = 0; step < 20; step += 1) await undefined;
        const untilMs = performance.now() + 3;
        while (performance.now() < untilMs);
        done.push(owner);
      }),
    );
  };
  await Promise.all([work('greedy', 40), work('modest', 2)]);
  isOver = true;
  // Each piece takes 3 of the 4 ms of a turn.
  expect(turns).toBeGreaterThanOrEqual(20);
  expect(done.lastIndexOf('modest')).toBeLessThan(6);
});

it('new connections are accepted before further work', async () => {
  const budget = new EventLoopBudget();
  let pieces = 0;
  let isOver = false;
  const work = async (owner: string): Promise<void> => {
    while (!isOver) {
      await budget.take(owner);
      const untilMs = performance.now() + 3;
      while (performance.now() < untilMs);
      pieces += 1;
    }
  };
  const connections = 100;
  let accepted = 0;
  let piecesMeanwhile = 0;
  const server = createServer((socket) => {
    arrivals.note();
    accepted += 1;
    if (accepted === 1) pieces = 0;
    if (accepted === connections) {
      piecesMeanwhile = pieces;
      isOver = true;
    }
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const working = [work('one'), work('other')];
  for (let index = 0; index < connections; index += 1) connect(port, '127.0.0.1').on('error', () => {});
  await Promise.all(working);
  server.close();
  // One connection a turn, with the work of 4 ms in each, would be 200 pieces.
  expect(piecesMeanwhile).toBeLessThan(connections / 2);
});

it('who connects without end does not stop the work', async () => {
  const budget = new EventLoopBudget();
  let isOver = false;
  const accept = (): void => {
    arrivals.note();
    if (!isOver) setImmediate(accept);
  };
  setImmediate(accept);
  const begunMs = performance.now();
  for (let piece = 0; piece < 10; piece += 1) {
    await budget.take('one');
    const untilMs = performance.now() + 5;
    while (performance.now() < untilMs);
  }
  isOver = true;
  expect(performance.now() - begunMs).toBeLessThan(10_000);
});
