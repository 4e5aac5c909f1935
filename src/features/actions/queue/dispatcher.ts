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
    return this.#counts.get(id) ?? { done: 0, failed: 0, parked: 0 };
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
  /** While one is made, nothing is forgotten that the copy may still need. */
  isBackupRunning(): boolean;
  log: Log;
}

/** How often the logs are looked at: what a message waits at most before its action is thought of. */
const busyLookMs = 5;
const idleLookMs = 20;
/** Without a record for so long, it is idle. */
const idleAfterMs = 1_000;
const upkeepMs = 5_000;
/** Until what could not be stored is tried again. */
const failureMs = 1_000;

/**
 * From the logs of all shards to the actions' runs. It only ever reads what devices wrote, so none of them
 * waits for it; with no action enabled it does not even look.
 */
export class Dispatcher {
  readonly runner: ActionExecutor;
  readonly #options: DispatcherOptions;
  readonly #outbox: Outbox;
  readonly #scanner: LogScanner;
  readonly #lanes = new Map<string, ActionQueue>();
  readonly #starts = new Map<string, Promise<void>>();
  readonly #schedule: ThreadSchedule;
  readonly tests: TestTurns;
  readonly attempts = new AttemptCounts();
  #looking = false;
  #lastFoundMs = 0;
  #lookTimer: NodeJS.Timeout | undefined;
  readonly #upkeepTimer: NodeJS.Timeout;
  readonly #recovered: Promise<void>;
  #isStopping = false;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#outbox = new Outbox({
      ...options,
      onRefused: (parcel, refused) => {
        // Of a deleted action nothing is kept.
        const isKept = options.actions.all().some(({ id }) => actionKey(id).equals(parcel.action));
        if (isKept) this.runner.parkMails(parcel, refused);
      },
      onParked: ({ action, record }) => this.runner.parkedCounts.change(action, record.device, 1),
    });
    this.#scanner = new LogScanner({
      shards: options.shards,
      log: options.log,
      lanes: () => this.#lanes.values(),
      mayTake: () => !this.#isStopping && !this.#outbox.isFull,
    });
    this.runner = new ActionExecutor(options, this.#outbox);
    this.#schedule = new ThreadSchedule(options.config.actionThreads);
    this.tests = new TestTurns(options.config.actionTestsMax, this.#schedule, () => this.#pump());
    this.#recovered = this.#outbox.recover();
    // Whoever waits for it fails, and says so; with no action enabled nobody does.
    this.#recovered.catch(() => {});
    this.#upkeepTimer = setInterval(() => {
      this.#upkeep().catch((error: unknown) => logFailure(options.log, error, 'actions: upkeep failed'));
    }, upkeepMs);
    for (const action of options.actions.all()) this.restart(action);
  }

  lane(action: Action): ActionQueue | undefined {
    return this.#lanes.get(action.id);
  }

  /** Of every shard: where its log ends now. */
  async logEnds(): Promise<number[]> {
    return Promise.all(this.#options.shards.all.map((shard) => shard.logEnd()));
  }

  /** Has the action run as it is declared now, from what is on disk of it; a disabled one does not. */
  restart(action: Action): void {
    const start = this.#start(action)
      .catch((error: unknown) => this.#fail(action, error))
      .finally(() => {
        if (this.#starts.get(action.id) === start) this.#starts.delete(action.id);
      });
    this.#starts.set(action.id, start);
  }

  /** Settles when a start that was begun has ended, well or not. */
  async started({ id }: Action): Promise<void> {
    await this.#starts.get(id);
  }

  /** Settles when nothing more is written for this action. */
  async end({ id }: Action): Promise<void> {
    const lane = this.#lanes.get(id);
    this.#lanes.delete(id);
    if (lane === undefined) return;
    lane.isStopped = true;
    await this.#options.journal.settled();
  }

  /** Nothing is kept of a deleted one. */
  forget(action: Action): void {
    this.attempts.forget(action);
    this.runner.forget(actionKey(action.id));
  }

  /**
   * Positions of all logs that the action has not looked at; before it has started, as the last server left it.
   * `logEnds`: as they were a moment ago.
   */
  behind(action: Action, logEnds: readonly number[]): number {
    if (!action.enabled) return 0;
    const { journal } = this.#options;
    const { progress } = this.lane(action)?.intake ?? {};
    if (progress === undefined) journal.refresh();
    let behind = 0;
    for (const [index, end] of logEnds.entries()) {
      const scanned =
        progress?.[index]?.lookedAt ?? storedLowest(journal.tables, actionKey(action.id), index);
      behind += Math.max(0, end - scanned);
    }
    return behind;
  }

  /** Records that are being run or wait for it; before the action has started, those whose mails are on their way. */
  inHand(action: Action): number {
    return this.lane(action)?.inHand ?? this.#outbox.count(actionKey(action.id));
  }

  /** Puts mails that were refused up for delivery once more, in place of their parked run. False: it is gone. */
  async sendAgain(action: Action, kept: StoredActionDeadLetter): Promise<boolean> {
    const id = actionKey(action.id);
    const parcel = { action: id, record: recordOf(kept), mails: kept.mails };
    let key: Buffer | undefined;
    await this.#options.journal.commit(() => {
      if (this.runner.unpark(id, kept.number)) key = this.#outbox.put(parcel);
    });
    if (key === undefined) return false;
    void this.#outbox.deliver(key, parcel);
    this.runner.parkedCounts.change(id, parcel.record.device, -1);
    return true;
  }

  /** Answers how many there still were. */
  async dropParked(action: Action, parked: readonly StoredActionDeadLetter[]): Promise<number> {
    const id = actionKey(action.id);
    let dropped: readonly StoredActionDeadLetter[] = [];
    await this.#options.journal.commit(() => {
      dropped = parked.filter(({ number }) => this.runner.unpark(id, number));
    });
    for (const { record } of dropped) this.runner.parkedCounts.change(id, record.device, -1);
    return dropped.length;
  }

  /** Runs that are under way are given up: they run again after the next start. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    clearTimeout(this.#lookTimer);
    clearInterval(this.#upkeepTimer);
    await this.#storeProgress().catch((error: unknown) => {
      const msg = 'actions: how far they are could not be stored at the stop; what is done is not done again';
      logFailure(this.#options.log, error, msg);
    });
    for (const lane of this.#lanes.values()) lane.isStopped = true;
    await this.#options.pool.close();
    this.tests.close();
    await this.#outbox.stop();
    await this.#options.journal.close();
  }

  async #start(declared: Action): Promise<void> {
    await this.#recovered;
    await this.end(declared);
    // The records of a device wait for the mails of those before them.
    await this.#outbox.settled(actionKey(declared.id));
    const logEnds = await this.logEnds();
    const { actions, config, journal } = this.#options;
    // As it is now: it may have been changed while this waited.
    const action = actions.all().find(({ id }) => id === declared.id);
    if (this.#isStopping || !action?.enabled || this.#lanes.has(action.id)) return;
    const lane = new ActionQueue(action, actions.current(action), {
      config,
      journal,
      logEnds,
      parked: this.runner.parkedCounts.of(actionKey(action.id)),
      onTheirWay: () => this.#outbox.count(actionKey(action.id)),
    });
    this.#lanes.set(action.id, lane);
    this.#lookSoon(0);
  }

  #fail(action: Action, error: unknown): void {
    if (this.#isStopping) return;
    const { fleetId: fleet, name } = action;
    const msg = 'an action cannot go on now; it will try again';
    logFailure(this.#options.log, error, msg, { fleet, action: name });
    const lane = this.#lanes.get(action.id);
    if (lane !== undefined) lane.isStopped = true;
    setTimeout(() => {
      if (!this.#isStopping) this.restart(action);
    }, failureMs);
  }

  #lookSoon(afterMs: number): void {
    if (this.#isStopping || this.#looking) return;
    clearTimeout(this.#lookTimer);
    this.#lookTimer = setTimeout(() => void this.#look(), afterMs);
  }

  async #look(): Promise<void> {
    this.#looking = true;
    let hasFailed = false;
    try {
      if (await this.#scanner.look()) this.#lastFoundMs = performance.now();
      this.#pump();
    } catch (error) {
      hasFailed = true;
      logFailure(this.#options.log, error, 'actions: the log cannot be read now');
    }
    this.#looking = false;
    if (this.#lanes.size === 0) return;
    const isIdle = performance.now() - this.#lastFoundMs > idleAfterMs;
    // A database that is away may say so at once.
    this.#lookSoon(hasFailed ? failureMs : isIdle ? idleLookMs : busyLookMs);
  }

  /** Gives threads that are free something to run. */
  #pump(): void {
    while (!this.#isStopping) {
      const mayRun = !this.#outbox.isFull && this.#options.journal.mayGrow();
      const lane = this.tests.next(mayRun ? [...this.#lanes.values()] : []);
      const run = lane?.next();
      if (lane === undefined || run === undefined) return;
      void this.#run(lane, run);
    }
  }

  async #run(lane: ActionQueue, run: PendingRun): Promise<void> {
    this.#schedule.begin(lane);
    let hasThread = true;
    const freeThread = (): void => {
      if (hasThread) this.#schedule.end(lane);
      hasThread = false;
    };
    try {
      const outcome = await this.runner.attempt({ lane, run }, () => {
        freeThread();
        this.#pump();
      });
      if (!lane.isStopped) this.attempts.count(lane.action, outcome);
    } catch (error) {
      freeThread();
      if (!lane.isStopped) this.#fail(lane.action, error);
    }
    // What is left over, should this fail, finds the next look.
    this.#lookSoon(0);
  }

  async #upkeep(): Promise<void> {
    await this.#storeProgress();
    await this.#outbox.forget(() => !this.#options.isBackupRunning());
  }

  async #storeProgress(): Promise<void> {
    const moved = [...this.#lanes.values()].filter(
      (lane) => !lane.isStopped && lane.intake.progress.some(({ isStored }) => !isStored),
    );
    if (moved.length === 0) return;
    await this.#options.journal.commit(() => {
      for (const { isStopped, intake } of moved) {
        if (!isStopped) for (const one of intake.progress) one.store();
      }
    });
  }
}
