import { deviceIdOf, fleetIdOf } from '../../../core/identity.ts';
import type { Log } from '../../../core/telemetry/log.ts';
import { formatUuid, generateUuid } from '../../../core/uuid.ts';
import type { ActionLogLine, Run, RunMail } from '../action-work.ts';
import type { ActionConfig } from '../config.ts';
import { sentKind } from '../declaration/trigger.ts';
import type { ActionDeadLetters, RefusedMail, StoredActionDeadLetter } from '../outbox/dead-letters.ts';
import {
  decodeOutboxEntry,
  encodeOutboxEntry,
  type OutboxEntry,
  type OutgoingMail,
  runMailsKept,
} from '../outbox/outbox-entry.ts';
import type { ActionQueue } from '../queue/action-queue.ts';
import type { PendingRun } from '../queue/in-hand.ts';
import type { RunError, RunReport } from '../sandbox/run.ts';
import type { ActionJournal } from '../tables.ts';
import { areCurrent, type Reads, stateFull, writeState } from './action-state.ts';
import { History } from './history.ts';

/** Conflicts of one attempt with concurrent changes of the state, after which it fails. */
const conflictsMax = 100;
const retryMsMax = 3_600_000;
/** Retained log lines per retained run, on average: if runs log more, their lines are retained for less long. */
const linesPerRunKept = 10;

/** A run, and the queue it belongs to. */
export interface Attempt {
  queue: ActionQueue;
  run: PendingRun;
}

/** The result of running the code of an attempt, none of which is stored yet. */
export interface AttemptResult {
  report: RunReport;
  /** Why nothing of it is to be stored: that of the report, or of its mails. */
  error: RunError | undefined;
  mails: readonly OutgoingMail[];
  reads: Reads;
}

/** Mails on disk, to be delivered by their key. */
export interface Sending {
  key: Buffer;
  entry: OutboxEntry;
}

/** Outcome of an attempt: `done` and `dead` end the run, `again` does not. */
export type AttemptEnd =
  | { type: 'done'; sending: Sending | undefined }
  | { type: 'dead' }
  | { type: 'again'; afterMs: number };

export interface RunJournalOptions {
  config: ActionConfig;
  journal: ActionJournal;
  deadLetters: ActionDeadLetters;
  /** Nothing is stored for a deleted action. */
  isDeclared(action: Buffer): boolean;
  log: Log;
}

/**
 * Stores what becomes of runs. Each step is one transaction, whole on disk or not at all:
 *
 *     code has run    ── commit ──►  done: state, progress, mails in the outbox    ┐
 *                                    dead: progress, a dead letter                 ├ and the attempt with its log
 *                                    again: the record stays in hand               ┘
 *     mails answered  ── settle ──►  results in the run; outbox entry gone; a dead letter of those refused
 *     replay of these ── resend ──►  dead letter gone, its mails in the outbox
 *
 * Before the commit nothing of a run exists; after it, the run never happens again.
 */
export class RunJournal {
  readonly runs: History<Run>;
  readonly lines: History<ActionLogLine>;
  readonly #options: RunJournalOptions;

  constructor(options: RunJournalOptions) {
    this.#options = options;
    const { tables } = options.journal;
    this.runs = new History(tables.runs);
    this.lines = new History(tables.logs);
  }

  /** Returns undefined if the queue was stopped meanwhile. @throws ApiError unavailable: then nothing is stored. */
  async commit(attempt: Attempt, result: AttemptResult): Promise<AttemptEnd | undefined> {
    let end = undefined as AttemptEnd | undefined;
    await this.#options.journal.commit(() => {
      if (!attempt.queue.isStopped) end = this.#store(attempt, result);
    });
    return end;
  }

  /** Ends the delivery of an entry. `answered`: the first mails of the run, by their ordinals. @throws ApiError unavailable. */
  settle(
    { key, entry }: Sending,
    answered: ReadonlyMap<number, RunMail>,
    refused: readonly RefusedMail[],
  ): Promise<void> {
    const { journal, deadLetters, isDeclared } = this.#options;
    return journal.commit(() => {
      journal.tables.outbox.delete(key);
      this.runs.change(entry.action, entry.run, (before) => ({
        ...before,
        sent: before.sent.map((mail, ordinal) => answered.get(ordinal) ?? mail),
      }));
      if (refused.length > 0 && isDeclared(entry.action)) deadLetters.addRefused(entry, refused);
    });
  }

  /** Puts the refused mails of a dead letter into the outbox again; undefined if it is gone. @throws ApiError unavailable. */
  async resend(
    action: Buffer,
    number: number,
    { record, mails }: StoredActionDeadLetter,
  ): Promise<Sending | undefined> {
    const { journal, deadLetters } = this.#options;
    let sending: Sending | undefined;
    await journal.commit(() => {
      if (deadLetters.remove(action, number))
        sending = this.#putMails({ action, run: number, record, mails });
    });
    return sending;
  }

  /** Mails that a crash left behind, in the order of their runs. */
  unsettled(): Sending[] {
    const { journal, log } = this.#options;
    journal.refresh();
    const left: Sending[] = [];
    for (const { key, value } of journal.tables.outbox.entries()) {
      try {
        left.push({ key, entry: decodeOutboxEntry(value) });
      } catch (error) {
        log.error({ err: error, key: key.toString('hex') }, 'actions: damaged outbox entry skipped');
      }
    }
    return left;
  }

  /** Drops what is in memory of a deleted action. */
  forget(action: Buffer): void {
    for (const history of [this.runs, this.lines]) history.forget(action);
  }

  #store({ queue, run }: Attempt, result: AttemptResult): AttemptEnd {
    const { config, deadLetters } = this.#options;
    // Its dead letter was dropped while it ran: discard the result.
    if (run.deadLetter !== undefined && !deadLetters.has(queue.id, run.deadLetter)) {
      return { type: 'done', sending: undefined };
    }
    const error = result.error ?? this.#storeState({ queue, run }, result);
    if (error === 'again') return { type: 'again', afterMs: 0 };
    const { actionAttemptsMax, actionRetryMilliseconds } = config.settings.current;
    // A record that the engine cannot read never becomes readable; no code of the action has run.
    const isLast = run.attempt >= actionAttemptsMax || error?.code === 'unreadable_record';
    if (error !== undefined && !isLast) {
      this.#note({ queue, run }, { ...result, error, mails: [] }, 'failed');
      const afterMs = Math.min(actionRetryMilliseconds * 2 ** (run.attempt - 1), retryMsMax);
      run.attempt += 1;
      run.conflicts = 0;
      return { type: 'again', afterMs };
    }
    queue.store(run);
    if (run.deadLetter !== undefined) deadLetters.remove(queue.id, run.deadLetter);
    if (error !== undefined) {
      this.#storeDead({ queue, run }, result, error);
      return { type: 'dead' };
    }
    const { mails } = result;
    const number = this.#note({ queue, run }, result, 'done');
    if (mails.length === 0) return { type: 'done', sending: undefined };
    return {
      type: 'done',
      sending: this.#putMails({ action: queue.id, run: number, record: run.record, mails }),
    };
  }

  /** Stores what the run has written; `again` if what it has read was outdated by then. */
  #storeState({ queue, run }: Attempt, { reads, report }: AttemptResult): RunError | 'again' | undefined {
    const { config, journal } = this.#options;
    if (!areCurrent(journal.tables, queue.id, reads)) {
      run.conflicts += 1;
      if (run.conflicts < conflictsMax) return 'again';
      return { code: 'state_conflict', msg: `Concurrent runs changed the state ${conflictsMax} times.` };
    }
    const { actionStateKeysMax: keysMax } = config.settings.current;
    return writeState(journal.tables, queue.id, report.writes, keysMax) ? undefined : stateFull(keysMax);
  }

  #storeDead({ queue, run }: Attempt, result: AttemptResult, error: RunError): void {
    const { deadLetters, log } = this.#options;
    const { record, attempt: attempts } = run;
    const number = this.#note({ queue, run }, { ...result, error, mails: [] }, 'dead');
    deadLetters.put(queue.id, number, { record, failedAtMs: Date.now(), attempts, error, mails: [] });
    log.warn(
      {
        fleet: fleetIdOf(record.device),
        action: queue.action.name,
        error: error.code,
        record: formatUuid(record.id),
      },
      'run of an action failed for good; kept as a dead letter',
    );
  }

  #putMails(entry: OutboxEntry): Sending {
    const key = generateUuid();
    this.#options.journal.tables.outbox.put(key, encodeOutboxEntry(entry));
    return { key, entry };
  }

  /** Keeps the attempt with its log; returns its number. */
  #note(
    { queue, run: { record, attempt } }: Attempt,
    { report, error, mails }: AttemptResult,
    outcome: Run['outcome'],
  ): number {
    const { actionRunsKept } = this.#options.config.settings.current;
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
      cpuMilliseconds: rounded(report.cpuMilliseconds),
      wallMilliseconds: rounded(report.wallMilliseconds),
      outcome,
      error,
      mails: mails.length,
      sent: mails
        .slice(0, runMailsKept)
        .map((mail) => ({ device: deviceIdOf(mail.device), name: mail.name })),
    };
    const number = this.runs.add(queue.id, run, actionRunsKept);
    for (const text of report.log) {
      this.lines.add(
        queue.id,
        { run: number, device, atMs: endedAtMs, text },
        linesPerRunKept * actionRunsKept,
      );
    }
    return number;
  }
}

/** Rounds to microseconds. */
function rounded(milliseconds: number): number {
  return Math.round(milliseconds * 1_000) / 1_000;
}
