import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type DeviceKey, deviceKeyOf } from '../../../src/core/identity.ts';
import { formatUuid, generateUuid } from '../../../src/core/uuid.ts';
import { CheckBudget } from '../../../src/declarations/schema-budgets/check-budget.ts';
import type { LogPage, StoredRecord } from '../../../src/domain/records/record.ts';
import type { Action, ActionVersion } from '../../../src/features/actions/declaration/action.ts';
import { ActionDeadLetters } from '../../../src/features/actions/outbox/dead-letters.ts';
import { ActionQueue } from '../../../src/features/actions/queue/action-queue.ts';
import type { PendingRun } from '../../../src/features/actions/queue/in-hand.ts';
import { openJournal } from '../../../src/maintenance/environments.ts';
import { configWith } from '../../harness/server/config.ts';
import { Random } from '../../storm/random.ts';

const folder = mkdtempSync(join(tmpdir(), 'fleetpost-test-'));
const journal = openJournal(folder, { mapBytesMax: 1024 ** 3, diskFreeBytesMin: 0 });
afterAll(async () => {
  await journal.close();
  rmSync(folder, { recursive: true });
});
// Only the clock by which attempts are delayed.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const actionQueueMax = 8;
const devicesBehindMax = 3;
const pageSize = 3;
const retryMs = 1_000;
const config = configWith({ actionQueueMax, actionRunsPerSecondMax: 1e6 });
const [slow, other, third] = ['SLOWDEVICE', 'OTHERDEV01', 'THIRDDEV01'].map((id) =>
  deviceKeyOf('FLEET001', id),
);
const version: ActionVersion = {
  number: 1,
  createdAtMs: 0,
  language: 'javascript',
  source: '',
  code: '',
  on: [{ kind: 'message', schema: 'opened' }],
  filter: {},
  tests: [],
};

/** One action, the log that it follows, and which devices' runs fail. */
class Subject {
  readonly log: StoredRecord[] = [];
  /** Position up to which the log was trimmed. */
  front = 0;
  readonly failing = new Set<DeviceKey>();
  readonly done: StoredRecord[] = [];
  queue: ActionQueue;
  readonly #action: Action = {
    id: formatUuid(generateUuid()),
    fleetId: 'FLEET001',
    name: 'any',
    createdAtMs: 0,
    enabled: true,
    begin: { id: formatUuid(generateUuid()), logEnds: [] },
    version: 1,
    versions: [],
  };

  readonly #filter: ActionVersion['filter'];
  readonly #checks: CheckBudget | undefined;
  readonly #config: typeof config;
  /** Reasons for which its filter was disabled. */
  readonly disabled: string[] = [];

  constructor(filter: ActionVersion['filter'] = {}, checks?: CheckBudget, ownConfig = config) {
    this.#filter = filter;
    this.#checks = checks;
    this.#config = ownConfig;
    this.queue = this.#start();
  }

  #start(): ActionQueue {
    return new ActionQueue(
      this.#action,
      { ...version, filter: this.#filter },
      {
        config: this.#config,
        checks: this.#checks,
        onFilterDisabled: (reason) => this.disabled.push(reason),
        journal,
        logEnds: [this.log.length],
        deadLetters: new ActionDeadLetters(journal, () => ({
          letters: config.settings.current.actionDeadLettersMax,
          bytes: config.settings.current.actionDeadLetterBytesMax,
        })),
        inFlight: () => 0,
        devicesBehindMax,
      },
    );
  }

  /** Restarts as after a kill: what was not committed never was. */
  restart(): void {
    this.queue.isStopped = true;
    this.queue = this.#start();
  }

  send(device: DeviceKey | undefined, count = 1): void {
    for (let n = 0; n < count; n += 1) {
      this.log.push({
        position: this.log.length,
        id: generateUuid(),
        device: device as DeviceKey,
        kind: 'message',
        schema: 'opened',
        payload: Buffer.from('{}'),
        storedAtMs: 0,
        isRelocated: false,
      });
    }
  }

  look(): void {
    const { queue } = this;
    queue.makeRoom();
    for (let pages = 0; pages < 4 && queue.wants(0); pages += 1) {
      const page = this.#page(queue.progress[0]?.scanned ?? 0);
      if (page.records.length > 0) queue.offer(0, page, new Map());
    }
    for (let pages = 0; pages < 4; pages += 1) {
      const from = queue.wantsAgain(0);
      if (from === undefined) break;
      queue.offerAgain(0, from, this.#page(from), new Map());
    }
    expect(this.queue.inHand).toBeLessThanOrEqual(actionQueueMax);
    expect(queue.progress[0]?.behind.size).toBeLessThanOrEqual(devicesBehindMax);
    expect(queue.progress[0]?.ahead).toBeLessThanOrEqual(actionQueueMax + 1);
  }

  /** One attempt; false: nothing can start. */
  async run(): Promise<boolean> {
    if (!this.queue.hasReady(performance.now())) return false;
    const run = this.queue.next() as PendingRun;
    if (this.failing.has(run.record.device)) {
      this.queue.delay(run, retryMs);
      return true;
    }
    await journal.commit(() => this.queue.store(run));
    this.done.push(run.record);
    this.queue.decided(run);
    this.queue.finish(run);
    return true;
  }

  /** Stores the progress, as is done now and then. */
  async store(): Promise<void> {
    await journal.commit(() => this.queue.progress[0]?.store());
  }

  /** Runs until nothing more can be done without time passing. */
  async settle(): Promise<void> {
    let before: string;
    do {
      before = this.#state;
      this.look();
      while (await this.run());
    } while (this.#state !== before);
  }

  positionsOf(device: DeviceKey | undefined): number[] {
    return this.done.filter((record) => record.device === device).map(({ position }) => position);
  }

  get lost(): number | undefined {
    return this.queue.progress[0]?.lost;
  }

  get #state(): string {
    const [progress] = this.queue.progress;
    return `${this.done.length} ${progress?.scanned} ${progress?.lowest} ${this.queue.inHand} ${[...(progress?.behind.passed() ?? [])]}`;
  }

  #page(from: number): LogPage {
    const start = Math.max(from, this.front);
    const records = this.log.slice(start, start + pageSize);
    return { records, next: start + records.length, damaged: false };
  }
}

it('a device that fails and has thousands of records waiting holds nobody up, and is run for in order later', async () => {
  const subject = new Subject();
  if (slow !== undefined) subject.failing.add(slow);
  for (let n = 0; n < 100; n += 1) {
    subject.send(slow, 20);
    subject.send(other);
    subject.send(third);
    await subject.settle();
  }
  expect(subject.positionsOf(other)).toHaveLength(100);
  expect(subject.positionsOf(third)).toHaveLength(100);
  expect(subject.queue.devicesBehind).toBe(1);
  // Nothing is kept of finished records but how far the others are, and where the device is.
  journal.refresh();
  expect(journal.tables.cursorDone.count()).toBeLessThanOrEqual(actionQueueMax);
  subject.restart();
  await subject.settle();
  expect(subject.done).toHaveLength(200);
  subject.failing.clear();
  vi.advanceTimersByTime(retryMs);
  await subject.settle();
  const own = subject.positionsOf(slow);
  expect(own).toHaveLength(2_000);
  expect(own).toEqual(own.toSorted((a, b) => a - b));
  await subject.store();
  journal.refresh();
  expect(journal.tables.behind.count()).toBe(0);
  expect(subject.queue.progress[0]?.isStored).toBe(true);
});

it('with more devices behind than may be the action waits, and goes on when one has caught up', async () => {
  const subject = new Subject();
  const stuck = Array.from({ length: devicesBehindMax + 1 }, (_, n) =>
    deviceKeyOf('FLEET001', `STUCK0000${n}`),
  );
  for (const device of stuck) {
    subject.failing.add(device);
    subject.send(device, 20);
    await subject.settle();
  }
  subject.send(other);
  await subject.settle();
  expect(subject.queue.held).toBe('devices_full');
  expect(subject.done).toEqual([]);
  subject.failing.delete(stuck[1] as DeviceKey);
  vi.advanceTimersByTime(retryMs);
  await subject.settle();
  expect(subject.positionsOf(stuck[1])).toHaveLength(20);
  await subject.store();
  await subject.settle();
  expect(subject.positionsOf(other)).toHaveLength(1);
});

it('what retention took before the action had scanned it counts as lost, once, whatever was done ahead of it', async () => {
  const subject = new Subject();
  if (slow !== undefined) subject.failing.add(slow);
  subject.send(slow);
  subject.send(other, 4);
  await subject.settle();
  subject.send(other, 10);
  subject.front = 12;
  await subject.settle();
  expect(subject.positionsOf(other)).toEqual([1, 2, 3, 4, 12, 13, 14]);
  // The record of the slow device is in hand.
  subject.failing.clear();
  vi.advanceTimersByTime(retryMs);
  await subject.settle();
  expect(subject.done).toHaveLength(8);
  expect(subject.lost).toBe(7);
  subject.restart();
  await subject.settle();
  expect(subject.lost).toBe(7);

  if (slow !== undefined) subject.failing.add(slow);
  subject.send(slow);
  subject.send(other, 4);
  await subject.settle();
  // Killed, and what it has in hand is trimmed: of what is before the end the rest was done.
  subject.front = 18;
  subject.restart();
  await subject.settle();
  expect(subject.done).toHaveLength(12);
  expect(subject.lost).toBe(8);
  await subject.store();
  subject.restart();
  expect(subject.lost).toBe(8);
});

it('whatever fails, waits and is killed, each record is done once and those of a device in their order', async () => {
  for (let seed = 1; seed <= 40; seed += 1) {
    const random = new Random(seed);
    const subject = new Subject();
    const devices = Array.from({ length: 6 }, (_, n) => deviceKeyOf('FLEET001', `DEVICE000${n}`));
    for (let step = 0; step < 150; step += 1) {
      const device = devices[random.integer(0, 5)] as DeviceKey;
      const chance = random.next();
      if (chance < 0.35) subject.send(device, random.integer(1, 6));
      else if (chance < 0.6) subject.look();
      else if (chance < 0.85) await subject.run();
      else if (chance < 0.9) subject.failing.add(device);
      else if (chance < 0.95) subject.failing.delete(device);
      else if (chance < 0.97) vi.advanceTimersByTime(retryMs);
      else if (chance < 0.98) subject.restart();
      else await subject.store();
    }
    subject.failing.clear();
    for (let round = 0; round < 3; round += 1) {
      vi.advanceTimersByTime(retryMs);
      await subject.settle();
    }
    const label = `seed ${seed}`;
    expect(subject.done.length, label).toBe(subject.log.length);
    for (const device of devices) {
      const own = subject.positionsOf(device);
      expect(own, label).toEqual([...new Set(own)].toSorted((a, b) => a - b));
    }
  }
});

it('records wait in the log while filters of the fleet have taken more time than they may', () => {
  const checks = new CheckBudget({ current: { schemaCheckMillisecondsPerSecondMax: 10 } });
  const filtering = new Subject({ payload: { type: 'object' } }, checks);
  const other = new Subject({}, checks);
  for (const subject of [filtering, other]) subject.send(slow);
  // 100 ms more than what is saved up.
  checks.spendCompilation(1_105);
  for (const subject of [filtering, other]) subject.look();
  expect([filtering.queue.held, filtering.queue.inHand]).toEqual(['limited', 0]);
  expect([other.queue.held, other.queue.inHand]).toEqual([undefined, 1]);
  vi.advanceTimersByTime(10_001);
  filtering.look();
  expect([filtering.queue.held, filtering.queue.inHand]).toEqual([undefined, 1]);
});

it('records wait in the log from the one on whose check disables the filter, until the action is put again', () => {
  // No check is short enough, as time stands still here.
  const impatient = configWith({ actionQueueMax, schemaCheckMillisecondsMax: -1 });
  const subject = new Subject({ payload: { type: 'object' } }, undefined, impatient);
  subject.send(slow, 3);
  for (let looks = 0; looks < 3; looks += 1) subject.look();
  expect([subject.queue.held, subject.queue.inHand]).toEqual(['filter_disabled', 1]);
  expect(subject.disabled).toEqual([expect.stringContaining('schemaCheckMillisecondsMax')]);
  expect(subject.queue.progress[0]?.scanned).toBe(1);
});
