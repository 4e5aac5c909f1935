import { deviceIdOf, fleetIdOf } from '../../../core/identity.ts';
import type { Log } from '../../../core/telemetry/log.ts';
import { formatUuid } from '../../../core/uuid.ts';
import type { StoredRecord } from '../../../domain/records/record.ts';
import type { ActionConfig } from '../config.ts';
import type { RefusedMail, StoredActionDeadLetter } from '../outbox/dead-letters.ts';
import { type Addressing, mailsOf } from '../outbox/mails.ts';
import type { Outbox } from '../outbox/outbox.ts';
import type { OutboxEntry } from '../outbox/parcel.ts';
import type { ActionPool } from '../pool/pool.ts';
import type { ActionQueue } from '../queue/action-queue.ts';
import { DeadLetterCounts } from '../queue/action-queue.ts';
import type { PendingRun } from '../queue/in-hand.ts';
import { sentKind } from '../queue/trigger.ts';
import type { RunError, RunLimits, RunRecord, RunReport } from '../sandbox/run.ts';
import type { ActionLogLine, Run } from '../service.ts';
import { numberKey } from '../tables.ts';
import { answerFor, areCurrent, type Reads, type Sources, writeState } from './action-state.ts';
import { History } from './history.ts';

export interface ActionExecutorOptions extends Sources, Addressing {
  shards: Sources['shards'] & Addressing['shards'];
  config: ActionConfig;
  pool: ActionPool;
  log: Log;
}

/** A run that others have changed the state under as often as this fails. */
const conflictsMax = 100;
const retryMsMax = 3_600_000;
/**
 * Keys in the state of one action, and the largest value, as JSON. A state is for what an action remembers, some MB at
 * most; what it has of each of many devices belongs into records.
 */
const stateKeysMax = 1_000;
const stateValueBytesMax = 4_096;
/** Of an action, as the mean: runs that log more have their lines for less long. */
const linesPerRunKept = 10;

/** A run, and the lane that it is of. */
interface Attempt {
  lane: ActionQueue;
  run: PendingRun;
}

/** How an attempt ended: `done` and `parked` are the end of the run, `again` is not. `parked`: how many more are. */
type Ending =
  | { type: 'done'; key: Buffer | undefined; parked: number }
  | { type: 'parked'; parked: number }
  | { type: 'again'; afterMs: number };

export function limitsOf(config: ActionConfig): RunLimits {
  return {
    cpuMilliseconds: config.actionCpuMilliseconds,
    wallMilliseconds: config.actionWallMilliseconds,
    memoryBytes: config.actionMemoryBytesMax,
    mailsMax: config.actionMailsMax,
    payloadBytesMax: config.bodyBytesMax,
    stateWritesMax: stateKeysMax,
    stateValueBytesMax,
  };
}

function describeRecord(record: StoredRecord): RunRecord {
  const { id, device, schema, payload, storedAtMs } = record;
  return {
    id: formatUuid(id),
    kind: sentKind(record),
    device: deviceIdOf(device),
    name: schema,
    payload: payload.toString('utf8'),
    time: new Date(storedAtMs).toISOString(),
  };
}

/**
 * Runs an action for a record and commits what came of it in one transaction: its mails into the outbox, its
 * state, its log, and that the record is done. Before that commit nothing of the run exists; after it, the run
 * never happens again.
 */
export class ActionExecutor {
  readonly runs: History<Run>;
  readonly lines: History<ActionLogLine>;
  readonly parked: History<StoredActionDeadLetter>;
  readonly parkedCounts: DeadLetterCounts;
  readonly #options: ActionExecutorOptions;
  readonly #outbox: Outbox;

  constructor(options: ActionExecutorOptions, outbox: Outbox) {
    this.#options = options;
    this.#outbox = outbox;
    const { tables } = options.journal;
    this.runs = new History(tables.runs);
    this.lines = new History(tables.logs);
    this.parked = new History(tables.parked);
    this.parkedCounts = new DeadLetterCounts(this.parked);
  }

  /**
   * One attempt, and its delivery. `onThreadFree` is called as soon as the code has run.
   * @throws StoreError when what came of it could not be stored.
   */
  async attempt(attempt: Attempt, onThreadFree: () => void): Promise<'done' | 'failed' | 'parked'> {
    const { lane, run } = attempt;
    const { record, parked } = run;
    if (parked !== undefined && this.parked.get(lane.id, parked) === undefined) {
      // Dropped while it waited for its turn.
      onThreadFree();
      lane.decided(run);
      lane.finish(run);
      return 'done';
    }
    const reads: Reads = new Map();
    const report = await this.#runCode(attempt, reads).finally(onThreadFree);
    if (lane.isStopped) return 'failed';
    const { error, mails } = await mailsOf(lane.action.fleetId, report, this.#options);
    const parcel: OutboxEntry = { action: lane.id, record, mails };
    const ending = await this.#commit(attempt, report, error, parcel, reads);
    if (ending === undefined) return 'failed';
    if (ending.type === 'again') {
      lane.delay(run, ending.afterMs);
      return 'failed';
    }
    // What may still be parked is counted there from now on, and all before anything else may start.
    const delivery =
      ending.type === 'done' && ending.key !== undefined
        ? this.#outbox.deliver(ending.key, parcel)
        : undefined;
    this.parkedCounts.change(lane.id, record.device, ending.parked);
    lane.decided(run);
    await delivery;
    lane.finish(run);
    return ending.type;
  }

  /** Inside a write transaction: what a run has sent and a mailbox has not taken. Answers what to count. */
  parkMails({ action, record }: OutboxEntry, mails: readonly RefusedMail[]): void {
    const [first] = mails;
    const which = first === undefined ? '' : `, the first by ${deviceIdOf(first.device)}: ${first.reason}`;
    const msg = `${mails.length} of its mails were not taken${which}.`;
    const error: RunError = { code: 'mail_refused', msg };
    this.#park(action, { record, parkedAtMs: Date.now(), attempts: 1, error, mails });
  }

  /** Inside a write transaction. False when there is none of that number. */
  unpark(action: Buffer, number: number): boolean {
    return this.#options.journal.tables.parked.removeSync(numberKey(action, number));
  }

  forget(action: Buffer): void {
    for (const history of [this.runs, this.lines, this.parked]) history.forget(action);
    this.parkedCounts.forget(action);
  }

  #runCode({ lane, run: { record } }: Attempt, reads: Reads): Promise<RunReport> {
    const { config, pool } = this.#options;
    return pool.run(
      {
        key: `${lane.action.id}.${lane.version.number}`,
        code: lane.version.code,
        name: lane.action.name,
        record: describeRecord(record),
        limits: limitsOf(config),
      },
      answerFor(lane.action.fleetId, lane.id, reads, this.#options),
    );
  }

  /** Undefined when the lane was stopped meanwhile. */
  async #commit(
    attempt: Attempt,
    report: RunReport,
    error: RunError | undefined,
    parcel: OutboxEntry,
    reads: Reads,
  ): Promise<Ending | undefined> {
    let ending = undefined as Ending | undefined;
    await this.#options.journal.commit(() => {
      if (attempt.lane.isStopped) return;
      ending = this.#store(attempt, report, error, parcel, reads);
    });
    return ending;
  }

  /** Inside the write transaction. */
  #store(
    { lane, run }: Attempt,
    report: RunReport,
    failure: RunError | undefined,
    parcel: OutboxEntry,
    reads: Reads,
  ): Ending {
    const { config, journal } = this.#options;
    const { tables } = journal;
    // Dropped while it ran: nothing comes of it.
    if (run.parked !== undefined && !tables.parked.doesExist(numberKey(lane.id, run.parked))) {
      return { type: 'done', key: undefined, parked: 0 };
    }
    let error = failure;
    if (error === undefined && !areCurrent(tables, lane.id, reads)) {
      run.conflicts += 1;
      if (run.conflicts < conflictsMax) return { type: 'again', afterMs: 0 };
      error = {
        code: 'state_conflict',
        msg: `Other runs changed the state ${conflictsMax} times meanwhile.`,
      };
    }
    if (error === undefined && !writeState(tables, lane.id, report.writes, stateKeysMax)) {
      const msg = `The state would have more than ${stateKeysMax} keys.`;
      error = { code: 'state_full', msg };
    }
    // What the engine cannot read it never can: no code of the action has run.
    const isLast = run.attempt >= config.actionAttemptsMax || error?.code === 'unreadable_record';
    const outcome = error === undefined ? 'done' : isLast ? 'parked' : 'failed';
    this.#note({ lane, run }, report, error, outcome, parcel.mails.length);
    if (error !== undefined && !isLast) {
      const afterMs = Math.min(config.actionRetryMilliseconds * 2 ** (run.attempt - 1), retryMsMax);
      run.attempt += 1;
      run.conflicts = 0;
      return { type: 'again', afterMs };
    }
    lane.store(run);
    const unparked = run.parked !== undefined && this.unpark(lane.id, run.parked) ? 1 : 0;
    if (error !== undefined) {
      const { record, attempt } = run;
      this.#park(lane.id, { record, parkedAtMs: Date.now(), attempts: attempt, error, mails: [] });
      return { type: 'parked', parked: 1 - unparked };
    }
    const key = parcel.mails.length === 0 ? undefined : this.#outbox.put(parcel);
    return { type: 'done', key, parked: -unparked };
  }

  #park(action: Buffer, kept: Omit<StoredActionDeadLetter, 'number'>): void {
    this.parked.add(action, kept, Number.POSITIVE_INFINITY);
  }

  #note(
    { lane, run: { record, attempt } }: Attempt,
    { cpuMilliseconds, wallMilliseconds, log }: RunReport,
    error: RunError | undefined,
    outcome: Run['outcome'],
    mails: number,
  ): void {
    const { config } = this.#options;
    const device = deviceIdOf(record.device);
    const endedAtMs = Date.now();
    const run: Omit<Run, 'number'> = {
      recordId: formatUuid(record.id),
      device,
      name: record.schema,
      version: lane.version.number,
      attempt,
      endedAtMs,
      cpuMilliseconds: rounded(cpuMilliseconds),
      wallMilliseconds: rounded(wallMilliseconds),
      outcome,
      error,
      mails,
    };
    const number = this.runs.add(lane.id, run, config.actionRunsKept);
    for (const text of log) {
      this.lines.add(
        lane.id,
        { run: number, device, atMs: endedAtMs, text },
        linesPerRunKept * config.actionRunsKept,
      );
    }
    if (error !== undefined && outcome === 'parked') {
      this.#options.log.warn(
        {
          fleet: fleetIdOf(record.device),
          action: lane.action.name,
          error: error.code,
          record: run.recordId,
        },
        'a run of an action is parked',
      );
    }
  }
}

/** To microseconds. */
function rounded(milliseconds: number): number {
  return Math.round(milliseconds * 1_000) / 1_000;
}
