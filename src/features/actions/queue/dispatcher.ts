import { EventLoopBudget, sleep } from '../../../core/async.ts';
import { ApiError } from '../../../core/errors.ts';
import type { DeviceKey } from '../../../core/identity.ts';
import { type Log, logFailure } from '../../../core/telemetry/log.ts';
import type { Fleets } from '../../../declarations/fleet.ts';
import type { Hold } from '../../../domain/hold.ts';
import type { Shard } from '../../../domain/shard.ts';
import type { LogFollower } from '../../records/log-follower.ts';
import type { Compiler } from '../compiler/compiler.ts';
import type { ActionConfig } from '../config.ts';
import type { Action } from '../declaration/action.ts';
import type { Actions } from '../declaration/actions.ts';
import { ParsedPayloads } from '../declaration/parsed-payloads.ts';
import { ActionDeadLetters } from '../outbox/dead-letters.ts';
import { Outbox } from '../outbox/outbox.ts';
import type { ActionPool } from '../pool/pool.ts';
import { ActionExecutor } from '../runs/action-executor.ts';
import { AttemptCounts } from '../runs/attempt-figures.ts';
import type { ReadPace } from '../runs/read-pace.ts';
import { RunJournal } from '../runs/run-journal.ts';
import { type ActionJournal, actionKey } from '../tables.ts';
import { ActionQueue } from './action-queue.ts';
import type { PendingRun } from './in-hand.ts';
import { storedProgress } from './progress.ts';
import { LogScanner } from './scanner.ts';
import { ThreadSchedule } from './schedule.ts';

export interface DispatcherOptions {
  config: ActionConfig;
  actions: Actions;
  fleets: Fleets;
  journal: ActionJournal;
  pool: ActionPool;
  compiler: Compiler;
  shards: { of(device: DeviceKey): Shard; readonly all: readonly Shard[] };
  follower: LogFollower;
  hold: Hold;
  readPace: ReadPace;
  /** While a backup runs, no dedupe keys are pruned that the copy may still need. */
  isBackupRunning(): boolean;
  log: Log;
}

/** Longest wait while the logs stand still, for attempts that are due and rates that are open again. */
const idleMs = 20;
const upkeepMs = 5_000;
/** Delay before retrying after a failure. */
const failureMs = 1_000;

interface ActionLag {
  behind: number;
  lost: number;
  /** By shard; undefined where it is not behind. */
  next: (number | undefined)[];
}

/**
 * Dispatches records from the logs of all shards to runs of actions. It only reads what devices wrote, so no device
 * waits for it; with no action enabled it does not even poll.
 */
export class Dispatcher {
  readonly deadLetters: ActionDeadLetters;
  readonly runJournal: RunJournal;
  readonly #options: DispatcherOptions;
  readonly #executor: ActionExecutor;
  readonly #outbox: Outbox;
  readonly #scanner: LogScanner;
  readonly #payloads = new ParsedPayloads();
  readonly #replays = new EventLoopBudget();
  readonly #queues = new Map<string, ActionQueue>();
  readonly #starts = new Map<string, Promise<void>>();
  /** Turns of runs, and of what operators try, at the threads. */
  readonly schedule: ThreadSchedule;
  readonly attempts = new AttemptCounts();
  readonly #stopping = new AbortController();
  #isFollowing = false;
  /** Aborted when something else than the logs has changed. */
  #waiting = new AbortController();
  readonly #upkeepTimer: NodeJS.Timeout;
  readonly #recovered: Promise<void>;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    const { journal, config } = options;
    this.deadLetters = new ActionDeadLetters(journal, () => {
      const { actionDeadLettersMax: letters, actionDeadLetterBytesMax: bytes } = config.settings.current;
      return { letters, bytes };
    });
    const { deadLetters } = this;
    this.runJournal = new RunJournal({
      ...options,
      deadLetters,
      isDeclared: (action) => options.actions.all().some(({ id }) => actionKey(id).equals(action)),
    });
    const { runJournal } = this;
    this.#outbox = new Outbox({ ...options, runJournal });
    this.#scanner = new LogScanner({
      ...options,
      queues: () => this.#queues.values(),
      payloads: this.#payloads,
      mayTake: ({ fleetId }) => !this.#isStopping && !options.hold.isHeld && !this.#outbox.isFull(fleetId),
    });
    this.#executor = new ActionExecutor({ ...options, deadLetters, runJournal, outbox: this.#outbox });
    this.schedule = new ThreadSchedule(config.actionThreads, () => this.#pump());
    this.#recovered = this.#recover();
    // A start that waits for it fails, and logs that; with no action enabled none does.
    this.#recovered.catch(() => {});
    this.#upkeepTimer = setInterval(() => {
      this.#upkeep().catch((error: unknown) => logFailure(options.log, error, 'actions: upkeep failed'));
    }, upkeepMs);
  }

  queue(action: Action): ActionQueue | undefined {
    return this.#queues.get(action.id);
  }

  /** The end of each shard's log now. */
  logEnds(): Promise<number[]> {
    return this.#options.follower.ends();
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

  /** Drops what is in memory of a deleted action, and its dead letters. */
  async forget(action: Action): Promise<void> {
    this.attempts.forget(action);
    this.runJournal.forget(actionKey(action.id));
    await this.deadLetters.forget(actionKey(action.id));
  }

  /**
   * Positions of all logs that the action has not scanned, the first of each log, and those that it lost; before it has
   * started, by its state on disk. `logEnds`: as read a moment ago.
   */
  lag(action: Action, logEnds: readonly number[]): ActionLag {
    const { journal } = this.#options;
    const progress = this.queue(action)?.progress;
    if (progress === undefined) journal.refresh();
    const lag: ActionLag = { behind: 0, lost: 0, next: [] };
    for (const [shard, end] of logEnds.entries()) {
      const { lowest, lost } = progress?.[shard] ?? storedProgress(journal, actionKey(action.id), shard);
      // A disabled action skips what is stored meanwhile.
      const behind = action.enabled ? Math.max(0, end - lowest) : 0;
      lag.behind += behind;
      lag.next.push(behind > 0 ? lowest : undefined);
      lag.lost += lost;
    }
    return lag;
  }

  /** Age of the oldest record that an action with this lag has not scanned. */
  secondsBehind({ next }: ActionLag): Promise<number> {
    return this.#options.follower.secondsBehind(next);
  }

  /** Records running or waiting to; before the action has started, those whose mails are in flight. */
  inHand(action: Action): number {
    return this.queue(action)?.inHand ?? this.#outbox.count(actionKey(action.id));
  }

  /**
   * Replays one dead letter, or all, each with all its attempts; returns how many.
   * @throws ApiError limit_reached, server_held, unavailable.
   */
  async replay(action: Action, number?: number): Promise<number> {
    const id = actionKey(action.id);
    // No action has started before the release.
    if (this.#options.hold.isHeld) throw new ApiError('server_held');
    await this.started(action);
    let replayed = 0;
    for (const one of this.deadLetters.ids(id, number)) {
      await this.#replays.take(action.fleetId);
      await this.#outbox.room(action.fleetId);
      const letter = this.deadLetters.get(id, one);
      if (letter === undefined) continue;
      if (letter.mails.length > 0) {
        const sending = await this.runJournal.resend(id, one, letter);
        if (sending === undefined) continue;
        void this.#outbox.deliver(sending);
        replayed += 1;
        continue;
      }
      // Read again each time: it may be replaced while mails are sent again.
      const queue = this.queue(action);
      if (queue === undefined)
        throw new ApiError('limit_reached', { msg: 'This action is disabled. Enable it first.' });
      if (queue.replay(one, letter.record)) replayed += 1;
    }
    return replayed;
  }

  /** Abandons the runs under way; they run again after the next start. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#waiting.abort();
    clearInterval(this.#upkeepTimer);
    await this.#storeProgress().catch((error: unknown) => {
      const msg = 'actions: progress could not be stored at shutdown; what is done is still not run again';
      logFailure(this.#options.log, error, msg);
    });
    for (const queue of this.#queues.values()) queue.isStopped = true;
    await this.#options.pool.close();
    await this.#options.compiler.close();
    this.schedule.close();
    await this.#outbox.stop();
    await this.#options.journal.close();
  }

  /** Redelivers what a crash left behind, once the server is not held. */
  async #recover(): Promise<void> {
    await this.#options.hold.released(this.#stopping.signal);
    if (!this.#isStopping) await this.#outbox.recover();
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
      deadLetters: this.deadLetters,
      payloads: this.#payloads,
      checks: this.#options.fleets.checksOf(action.fleetId),
      onFilterDisabled: (reason) =>
        this.#options.log.warn(
          { fleet: action.fleetId, action: action.name, reason },
          'payload filter of an action disabled; its records wait until it is put again',
        ),
      inFlight: () => this.#outbox.count(actionKey(action.id)),
    });
    this.#queues.set(action.id, queue);
    void this.#follow();
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

  /** Scans the logs and starts runs as long as an action is enabled. */
  async #follow(): Promise<void> {
    this.#waiting.abort();
    if (this.#isFollowing) return;
    this.#isFollowing = true;
    while (this.#queues.size > 0 && !this.#isStopping) {
      // A change from here on ends the wait below at once.
      this.#waiting = new AbortController();
      try {
        const mark = await this.#options.follower.mark();
        const hasFound = await this.#scanner.poll(mark.ends);
        this.#pump();
        if (!hasFound) await this.#options.follower.changed(mark, idleMs, this.#waiting.signal);
      } catch (error) {
        if (this.#isStopping) break;
        logFailure(this.#options.log, error, 'actions: reading the log failed; retrying');
        // An unavailable database may fail at once.
        await sleep(failureMs, this.#stopping.signal);
      }
    }
    this.#isFollowing = false;
  }

  get #isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  /** Starts runs on free threads. */
  #pump(): void {
    while (!this.#isStopping) {
      const { hold, journal } = this.#options;
      const mayRun = !hold.isHeld && journal.mayGrow();
      const queues = mayRun ? [...this.#queues.values()] : [];
      const queue = this.schedule.next(queues.filter(({ fleetId }) => !this.#outbox.isFull(fleetId)));
      const run = queue?.next();
      if (queue === undefined || run === undefined) return;
      void this.#run(queue, run);
    }
  }

  async #run(queue: ActionQueue, run: PendingRun): Promise<void> {
    this.schedule.begin(queue);
    this.attempts.begin(queue.action);
    let hasThread = true;
    const freeThread = (): void => {
      if (hasThread) this.schedule.end(queue);
      hasThread = false;
    };
    try {
      const outcome = await this.#executor.attempt({ queue, run }, () => {
        freeThread();
        this.#pump();
      });
      if (!queue.isStopped) this.attempts.end(queue.action, outcome);
    } catch (error) {
      freeThread();
      if (!queue.isStopped) this.#fail(queue.action, error);
    }
    this.#waiting.abort();
  }

  async #upkeep(): Promise<void> {
    await this.#storeProgress();
    await this.#outbox.pruneDedupeKeys(() => !this.#options.isBackupRunning());
  }

  async #storeProgress(): Promise<void> {
    const moved = [...this.#queues.values()].filter(
      (queue) => !queue.isStopped && queue.progress.some(({ isStored }) => !isStored),
    );
    if (moved.length === 0) return;
    await this.#options.journal.commit(() => {
      for (const { isStopped, progress } of moved) {
        if (!isStopped) for (const one of progress) one.store();
      }
    });
  }
}
