import type { DeviceKey } from '../../../core/identity.ts';
import { type Log, logFailure } from '../../../core/telemetry/log.ts';
import type { Fleets } from '../../../declarations/fleet.ts';
import type { Shard } from '../../../domain/shard.ts';
import type { ActionConfig } from '../config.ts';
import type { Action } from '../declaration/action.ts';
import type { Actions } from '../declaration/actions.ts';
import { recordOf, type StoredActionDeadLetter } from '../outbox/dead-letters.ts';
import { Outbox } from '../outbox/outbox.ts';
import type { ActionPool } from '../pool/pool.ts';
import { ActionExecutor } from '../runs/action-executor.ts';
import { TestTurns } from '../runs/test-turns.ts';
import type { ActionStatus } from '../service.ts';
import { type ActionJournal, actionKey } from '../tables.ts';
import { ActionQueue } from './action-queue.ts';
import type { PendingRun } from './in-hand.ts';
import { storedLowest } from './queue-progress.ts';
import { LogScanner } from './scanner.ts';
import { ThreadSchedule } from './schedule.ts';

type Counts = ActionStatus['attempts'];

/** Attempts at runs of each action since the server started, for the metrics. */
class AttemptCounts {
  readonly #counts = new Map<string, Counts>();

  of({ id }: Action): Counts {
    return this.#counts.get(id) ?? { done: 0, failed: 0, dead: 0 };
  }

  count(action: Action, outcome: keyof Counts): void {
    const counts = this.of(action);
    this.#counts.set(action.id, { ...counts, [outcome]: counts[outcome] + 1 });
  }

  forget({ id }: Action): void {
    this.#counts.delete(id);
  }
}

export interface DispatcherOptions {
  config: ActionConfig;
  actions: Actions;
  fleets: Fleets;
  journal: ActionJournal;
  pool: ActionPool;
  shards: { of(device: DeviceKey): Shard; readonly all: readonly Shard[] };
  /** While a backup runs, no dedupe keys are pruned that the copy may still need. */
  isBackupRunning(): boolean;
  log: Log;
}

/** Interval for polling the logs: the longest wait of a message before its action is considered. */
const busyPollMs = 5;
const idlePollMs = 20;
/** Time without a record after which the dispatcher is idle. */
const idleAfterMs = 1_000;
const upkeepMs = 5_000;
/** Delay before retrying after a failure. */
const failureMs = 1_000;

/**
 * Dispatches records from the logs of all shards to runs of actions. It only reads what devices wrote, so no device
 * waits for it; with no action enabled it does not even poll.
 */
export class Dispatcher {
  readonly executor: ActionExecutor;
  readonly #options: DispatcherOptions;
  readonly #outbox: Outbox;
  readonly #scanner: LogScanner;
  readonly #queues = new Map<string, ActionQueue>();
  readonly #starts = new Map<string, Promise<void>>();
  readonly #schedule: ThreadSchedule;
  readonly tests: TestTurns;
  readonly attempts = new AttemptCounts();
  #isPolling = false;
  #lastFoundMs = 0;
  #pollTimer: NodeJS.Timeout | undefined;
  readonly #upkeepTimer: NodeJS.Timeout;
  readonly #recovered: Promise<void>;
  #isStopping = false;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#outbox = new Outbox({
      ...options,
      onRefused: (entry, refused) => {
        // Nothing is stored for a deleted action.
        const isDeclared = options.actions.all().some(({ id }) => actionKey(id).equals(entry.action));
        if (isDeclared) this.executor.deadLetterMails(entry, refused);
      },
      onDeadLetter: ({ action, record }) => this.executor.deadLetterCounts.change(action, record.device, 1),
    });
    this.#scanner = new LogScanner({
      shards: options.shards,
      log: options.log,
      queues: () => this.#queues.values(),
      mayTake: () => !this.#isStopping && !this.#outbox.isFull,
    });
    this.executor = new ActionExecutor(options, this.#outbox);
    this.#schedule = new ThreadSchedule(options.config.actionThreads);
    this.tests = new TestTurns(options.config.actionTestsMax, this.#schedule, () => this.#pump());
    this.#recovered = this.#outbox.recover();
    // A start that waits for it fails, and logs that; with no action enabled none does.
    this.#recovered.catch(() => {});
    this.#upkeepTimer = setInterval(() => {
      this.#upkeep().catch((error: unknown) => logFailure(options.log, error, 'actions: upkeep failed'));
    }, upkeepMs);
    for (const action of options.actions.all()) this.restart(action);
  }

  queue(action: Action): ActionQueue | undefined {
    return this.#queues.get(action.id);
  }

  /** The end of each shard's log now. */
  async logEnds(): Promise<number[]> {
    return Promise.all(this.#options.shards.all.map((shard) => shard.logEnd()));
  }

  /** Starts the action as it is declared now, from its state on disk, unless it is disabled. */
  restart(action: Action): void {
    const start = this.#start(action)
      .catch((error: unknown) => this.#fail(action, error))
      .finally(() => {
        if (this.#starts.get(action.id) === start) this.#starts.delete(action.id);
      });
    this.#starts.set(action.id, start);
  }

  /** Settles when a start under way has succeeded or failed. */
  async started({ id }: Action): Promise<void> {
    await this.#starts.get(id);
  }

  /** Stops the action; settles when nothing more is written for it. */
  async end({ id }: Action): Promise<void> {
    const queue = this.#queues.get(id);
    this.#queues.delete(id);
    if (queue === undefined) return;
    queue.isStopped = true;
    await this.#options.journal.settled();
  }

  /** Drops what is in memory of a deleted action. */
  forget(action: Action): void {
    this.attempts.forget(action);
    this.executor.forget(actionKey(action.id));
  }

  /**
   * Positions of all logs that the action has not scanned; before it has started, by its state on disk. `logEnds`: as
   * read a moment ago.
   */
  behind(action: Action, logEnds: readonly number[]): number {
    if (!action.enabled) return 0;
    const { journal } = this.#options;
    const { progress } = this.queue(action)?.intake ?? {};
    if (progress === undefined) journal.refresh();
    let behind = 0;
    for (const [index, end] of logEnds.entries()) {
      const scanned =
        progress?.[index]?.lowestScanned ?? storedLowest(journal.tables, actionKey(action.id), index);
      behind += Math.max(0, end - scanned);
    }
    return behind;
  }

  /** Records running or waiting to; before the action has started, those whose mails are in flight. */
  inHand(action: Action): number {
    return this.queue(action)?.inHand ?? this.#outbox.count(actionKey(action.id));
  }

  /** Queues refused mails for delivery again, in place of their dead letter. Returns false if that is gone. */
  async resendMails(action: Action, letter: StoredActionDeadLetter): Promise<boolean> {
    const id = actionKey(action.id);
    const entry = { action: id, record: recordOf(letter), mails: letter.mails };
    let key: Buffer | undefined;
    await this.#options.journal.commit(() => {
      if (this.executor.removeDeadLetter(id, letter.number)) key = this.#outbox.put(entry);
    });
    if (key === undefined) return false;
    void this.#outbox.deliver(key, entry);
    this.executor.deadLetterCounts.change(id, entry.record.device, -1);
    return true;
  }

  /** Returns how many there still were. */
  async dropDeadLetters(action: Action, letters: readonly StoredActionDeadLetter[]): Promise<number> {
    const id = actionKey(action.id);
    let dropped: readonly StoredActionDeadLetter[] = [];
    await this.#options.journal.commit(() => {
      dropped = letters.filter(({ number }) => this.executor.removeDeadLetter(id, number));
    });
    for (const { record } of dropped) this.executor.deadLetterCounts.change(id, record.device, -1);
    return dropped.length;
  }

  /** Abandons the runs under way; they run again after the next start. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    clearTimeout(this.#pollTimer);
    clearInterval(this.#upkeepTimer);
    await this.#storeProgress().catch((error: unknown) => {
      const msg = 'actions: progress could not be stored at shutdown; what is done is still not run again';
      logFailure(this.#options.log, error, msg);
    });
    for (const queue of this.#queues.values()) queue.isStopped = true;
    await this.#options.pool.close();
    this.tests.close();
    await this.#outbox.stop();
    await this.#options.journal.close();
  }

  async #start(declared: Action): Promise<void> {
    await this.#recovered;
    await this.end(declared);
    // The records of a device wait for the mails of earlier ones.
    await this.#outbox.settled(actionKey(declared.id));
    const logEnds = await this.logEnds();
    const { actions, config, journal } = this.#options;
    // Read again: it may have changed while this waited.
    const action = actions.all().find(({ id }) => id === declared.id);
    if (this.#isStopping || !action?.enabled || this.#queues.has(action.id)) return;
    const queue = new ActionQueue(action, actions.current(action), {
      config,
      journal,
      logEnds,
      deadLetters: this.executor.deadLetterCounts.of(actionKey(action.id)),
      inFlight: () => this.#outbox.count(actionKey(action.id)),
    });
    this.#queues.set(action.id, queue);
    this.#pollSoon(0);
  }

  #fail(action: Action, error: unknown): void {
    if (this.#isStopping) return;
    const { fleetId: fleet, name } = action;
    const msg = 'action failed to continue; retrying';
    logFailure(this.#options.log, error, msg, { fleet, action: name });
    const queue = this.#queues.get(action.id);
    if (queue !== undefined) queue.isStopped = true;
    setTimeout(() => {
      if (!this.#isStopping) this.restart(action);
    }, failureMs);
  }

  #pollSoon(afterMs: number): void {
    if (this.#isStopping || this.#isPolling) return;
    clearTimeout(this.#pollTimer);
    this.#pollTimer = setTimeout(() => void this.#poll(), afterMs);
  }

  async #poll(): Promise<void> {
    this.#isPolling = true;
    let hasFailed = false;
    try {
      if (await this.#scanner.poll()) this.#lastFoundMs = performance.now();
      this.#pump();
    } catch (error) {
      hasFailed = true;
      logFailure(this.#options.log, error, 'actions: reading the log failed; retrying');
    }
    this.#isPolling = false;
    if (this.#queues.size === 0) return;
    const isIdle = performance.now() - this.#lastFoundMs > idleAfterMs;
    // Waits longer after a failure, as an unavailable database may fail at once.
    this.#pollSoon(hasFailed ? failureMs : isIdle ? idlePollMs : busyPollMs);
  }

  /** Starts runs on free threads. */
  #pump(): void {
    while (!this.#isStopping) {
      const mayRun = !this.#outbox.isFull && this.#options.journal.mayGrow();
      const queue = this.tests.next(mayRun ? [...this.#queues.values()] : []);
      const run = queue?.next();
      if (queue === undefined || run === undefined) return;
      void this.#run(queue, run);
    }
  }

  async #run(queue: ActionQueue, run: PendingRun): Promise<void> {
    this.#schedule.begin(queue);
    let hasThread = true;
    const freeThread = (): void => {
      if (hasThread) this.#schedule.end(queue);
      hasThread = false;
    };
    try {
      const outcome = await this.executor.attempt({ queue, run }, () => {
        freeThread();
        this.#pump();
      });
      if (!queue.isStopped) this.attempts.count(queue.action, outcome);
    } catch (error) {
      freeThread();
      if (!queue.isStopped) this.#fail(queue.action, error);
    }
    // If this fails, the next poll finds what is left.
    this.#pollSoon(0);
  }

  async #upkeep(): Promise<void> {
    await this.#storeProgress();
    await this.#outbox.pruneDedupeKeys(() => !this.#options.isBackupRunning());
  }

  async #storeProgress(): Promise<void> {
    const moved = [...this.#queues.values()].filter(
      (queue) => !queue.isStopped && queue.intake.progress.some(({ isStored }) => !isStored),
    );
    if (moved.length === 0) return;
    await this.#options.journal.commit(() => {
      for (const { isStopped, intake } of moved) {
        if (!isStopped) for (const one of intake.progress) one.store();
      }
    });
  }
}
