import { deviceIdOf, fleetIdOf } from '../../../core/identity.ts';
import type { Log } from '../../../core/telemetry/log.ts';
import { formatUuid } from '../../../core/uuid.ts';
import type { StoredRecord } from '../../../domain/records/record.ts';
import type { ActionConfig } from '../config.ts';
import type { ActionDeadLetters } from '../outbox/dead-letters.ts';
import { type Addressing, mailsOf } from '../outbox/mails.ts';
import type { Outbox } from '../outbox/outbox.ts';
import { type OutboxEntry, type OutgoingMail, runMailsKept } from '../outbox/outbox-entry.ts';
import type { ActionPool } from '../pool/pool.ts';
import type { ActionQueue } from '../queue/action-queue.ts';
import type { PendingRun } from '../queue/in-hand.ts';
import { sentKind } from '../queue/trigger.ts';
import type { RunError, RunLimits, RunRecord, RunReport } from '../sandbox/run.ts';
import type { ActionLogLine, Run, RunMail } from '../service.ts';
import {
  answerFor,
  areCurrent,
  type Reads,
  readState,
  type Sources,
  stateFull,
  writeState,
} from './action-state.ts';
import { History } from './history.ts';

export interface ActionExecutorOptions extends Sources, Addressing {
  shards: Sources['shards'] & Addressing['shards'];
  config: ActionConfig;
  pool: ActionPool;
  deadLetters: ActionDeadLetters;
  log: Log;
}

/** Conflicts of one attempt with concurrent changes of the state, after which it fails. */
const conflictsMax = 100;
const retryMsMax = 3_600_000;
/** Retained log lines per retained run, on average: if runs log more, their lines are retained for less long. */
const linesPerRunKept = 10;

/** A run, and the queue it belongs to. */
interface Attempt {
  queue: ActionQueue;
  run: PendingRun;
}

/** Outcome of an attempt: `done` and `dead` end the run, `again` does not. */
type AttemptEnd =
  | { type: 'done'; sending: { key: Buffer; entry: OutboxEntry } | undefined }
  | { type: 'dead' }
  | { type: 'again'; afterMs: number };

export function limitsOf(config: ActionConfig): RunLimits {
  return {
    cpuMilliseconds: config.settings.current.actionCpuMilliseconds,
    wallMilliseconds: config.settings.current.actionWallMilliseconds,
    memoryBytes: config.settings.current.actionMemoryBytesMax,
    mailsMax: config.settings.current.actionMailsMax,
    payloadBytesMax: config.bodyBytesMax,
    stateWritesMax: config.settings.current.actionStateKeysMax,
    stateValueBytesMax: config.settings.current.actionStateValueBytesMax,
  };
}

function describeRecord(record: StoredRecord): RunRecord {
  const { id, device, schema, payload, storedAtMs, recordedAtMs } = record;
  return {
    id: formatUuid(id),
    kind: sentKind(record),
    device: deviceIdOf(device),
    name: schema,
    payload: payload.toString('utf8'),
    time: new Date(storedAtMs).toISOString(),
    ...(recordedAtMs !== undefined && { recordedAt: new Date(recordedAtMs).toISOString() }),
  };
}

/**
 * Runs an action for a record and commits the result in one transaction: mails into the outbox, state, log, and the
 * record marked done. Before the commit nothing of the run exists; after it, the run never happens again.
 */
export class ActionExecutor {
  readonly runs: History<Run>;
  readonly lines: History<ActionLogLine>;
  readonly #options: ActionExecutorOptions;
  readonly #outbox: Outbox;

  constructor(options: ActionExecutorOptions, outbox: Outbox) {
    this.#options = options;
    this.#outbox = outbox;
    const { tables } = options.journal;
    this.runs = new History(tables.runs);
    this.lines = new History(tables.logs);
  }

  /**
   * Makes one attempt and delivers its mails. `onThreadFree` is called as soon as the code has run.
   * @throws StoreError if the result could not be stored.
   */
  async attempt(attempt: Attempt, onThreadFree: () => void): Promise<'done' | 'failed' | 'dead'> {
    const { queue, run } = attempt;
    const { deadLetter } = run;
    if (deadLetter !== undefined && this.#options.deadLetters.get(queue.id, deadLetter) === undefined) {
      // Its dead letter was dropped while it waited.
      onThreadFree();
      queue.decided(run);
      queue.finish(run);
      return 'done';
    }
    const reads: Reads = new Map();
    const report = await this.#runCode(attempt, reads).finally(onThreadFree);
    if (queue.isStopped) return 'failed';
    const { error, mails } = await mailsOf(queue.action.fleetId, report, this.#options);
    const ending = await this.#commit(attempt, report, error, mails, reads);
    if (ending === undefined) return 'failed';
    if (ending.type === 'again') {
      queue.delay(run, ending.afterMs);
      return 'failed';
    }
    // Order matters: the entry in flight is counted before the run counts as decided, as its dead letter was, all before
    // anything else may start.
    const sending = ending.type === 'done' ? ending.sending : undefined;
    const delivery = sending && this.#outbox.deliver(sending.key, sending.entry);
    queue.decided(run);
    await delivery;
    queue.finish(run);
    return ending.type;
  }

  /** Keeps what became of the mails of a run, as far as both are retained. Call inside a write transaction. */
  noteDelivery({ action, run }: OutboxEntry, delivered: ReadonlyMap<number, RunMail>): void {
    this.runs.change(action, run, (before) => ({
      ...before,
      sent: before.sent.map((mail, ordinal) => delivered.get(ordinal) ?? mail),
    }));
  }

  forget(action: Buffer): void {
    for (const history of [this.runs, this.lines]) history.forget(action);
  }

  #runCode({ queue, run: { record } }: Attempt, reads: Reads): Promise<RunReport> {
    const { config, journal, pool } = this.#options;
    return pool.run(
      {
        key: `${queue.action.id}.${queue.version.number}`,
        code: queue.version.code,
        name: queue.action.name,
        record: describeRecord(record),
        limits: limitsOf(config),
      },
      answerFor(
        queue.action.fleetId,
        (key) => {
          journal.refresh();
          return readState(journal.tables, queue.id, key, reads);
        },
        this.#options,
      ),
    );
  }

  /** Returns undefined if the queue was stopped meanwhile. */
  async #commit(
    attempt: Attempt,
    report: RunReport,
    error: RunError | undefined,
    mails: readonly OutgoingMail[],
    reads: Reads,
  ): Promise<AttemptEnd | undefined> {
    let ending = undefined as AttemptEnd | undefined;
    await this.#options.deadLetters.change(attempt.queue.id, () => {
      if (attempt.queue.isStopped) return;
      ending = this.#store(attempt, report, error, mails, reads);
    });
    return ending;
  }

  /** Call inside the write transaction. */
  #store(
    { queue, run }: Attempt,
    report: RunReport,
    failure: RunError | undefined,
    mails: readonly OutgoingMail[],
    reads: Reads,
  ): AttemptEnd {
    const { config, journal, deadLetters } = this.#options;
    const { tables } = journal;
    // Its dead letter was dropped while it ran: discard the result.
    if (run.deadLetter !== undefined && !deadLetters.has(queue.id, run.deadLetter)) {
      return { type: 'done', sending: undefined };
    }
    let error = failure;
    if (error === undefined && !areCurrent(tables, queue.id, reads)) {
      run.conflicts += 1;
      if (run.conflicts < conflictsMax) return { type: 'again', afterMs: 0 };
      error = {
        code: 'state_conflict',
        msg: `Concurrent runs changed the state ${conflictsMax} times.`,
      };
    }
    const { actionStateKeysMax: keysMax } = config.settings.current;
    if (error === undefined && !writeState(tables, queue.id, report.writes, keysMax)) {
      error = stateFull(keysMax);
    }
    // A record that the engine cannot read never becomes readable; no code of the action has run.
    const isLast =
      run.attempt >= config.settings.current.actionAttemptsMax || error?.code === 'unreadable_record';
    const outcome = error === undefined ? 'done' : isLast ? 'dead' : 'failed';
    const number = this.#note({ queue, run }, report, error, outcome, error === undefined ? mails : []);
    if (error !== undefined && !isLast) {
      const afterMs = Math.min(
        config.settings.current.actionRetryMilliseconds * 2 ** (run.attempt - 1),
        retryMsMax,
      );
      run.attempt += 1;
      run.conflicts = 0;
      return { type: 'again', afterMs };
    }
    queue.store(run);
    if (run.deadLetter !== undefined) deadLetters.remove(queue.id, run.deadLetter);
    if (error !== undefined) {
      const { record, attempt } = run;
      deadLetters.put(queue.id, number, {
        record,
        failedAtMs: Date.now(),
        attempts: attempt,
        error,
        mails: [],
      });
      return { type: 'dead' };
    }
    if (mails.length === 0) return { type: 'done', sending: undefined };
    const entry = { action: queue.id, run: number, record: run.record, mails };
    return { type: 'done', sending: { key: this.#outbox.put(entry), entry } };
  }

  /** Keeps the attempt with its log; returns its number. */
  #note(
    { queue, run: { record, attempt } }: Attempt,
    { cpuMilliseconds, wallMilliseconds, log }: RunReport,
    error: RunError | undefined,
    outcome: Run['outcome'],
    mails: readonly OutgoingMail[],
  ): number {
    const { config } = this.#options;
    const device = deviceIdOf(record.device);
    const endedAtMs = Date.now();
    const run: Omit<Run, 'number'> = {
      recordId: formatUuid(record.id),
      position: record.position,
      kind: sentKind(record),
      device,
      name: record.schema,
      storedAtMs: record.storedAtMs,
      version: queue.version.number,
      attempt,
      endedAtMs,
      cpuMilliseconds: rounded(cpuMilliseconds),
      wallMilliseconds: rounded(wallMilliseconds),
      outcome,
      error,
      mails: mails.length,
      sent: mails
        .slice(0, runMailsKept)
        .map((mail) => ({ device: deviceIdOf(mail.device), name: mail.name })),
    };
    const number = this.runs.add(queue.id, run, config.settings.current.actionRunsKept);
    for (const text of log) {
      this.lines.add(
        queue.id,
        { run: number, device, atMs: endedAtMs, text },
        linesPerRunKept * config.settings.current.actionRunsKept,
      );
    }
    if (error !== undefined && outcome === 'dead') {
      this.#options.log.warn(
        {
          fleet: fleetIdOf(record.device),
          action: queue.action.name,
          error: error.code,
          record: run.recordId,
        },
        'run of an action failed for good; kept as a dead letter',
      );
    }
    return number;
  }
}

/** Rounds to microseconds. */
function rounded(milliseconds: number): number {
  return Math.round(milliseconds * 1_000) / 1_000;
}
