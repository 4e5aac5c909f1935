import { deviceIdOf } from '../../../core/identity.ts';
import { formatUuid } from '../../../core/uuid.ts';
import type { StoredRecord } from '../../../domain/records/record.ts';
import type { ActionConfig } from '../config.ts';
import { sentKind } from '../declaration/trigger.ts';
import type { ActionDeadLetters } from '../outbox/dead-letters.ts';
import { type Addressing, mailsOf } from '../outbox/mails.ts';
import type { Outbox } from '../outbox/outbox.ts';
import type { ActionPool } from '../pool/pool.ts';
import type { RunLimits, RunRecord, RunReport } from '../sandbox/run.ts';
import { answerFor, type Reads, readState, type Sources } from './action-state.ts';
import type { Attempt, RunJournal } from './run-journal.ts';

export interface ActionExecutorOptions extends Sources, Addressing {
  shards: Sources['shards'] & Addressing['shards'];
  config: ActionConfig;
  pool: ActionPool;
  deadLetters: ActionDeadLetters;
  runJournal: RunJournal;
  outbox: Outbox;
}

export function limitsOf(config: ActionConfig): RunLimits {
  return {
    cpuMilliseconds: config.settings.current.actionCpuMilliseconds,
    wallMilliseconds: config.settings.current.actionWallMilliseconds,
    memoryBytes: config.settings.current.actionMemoryBytesMax,
    mailsMax: config.settings.current.actionMailsMax,
    readsMax: config.settings.current.actionReadsMax,
    payloadBytesMax: config.bodyBytesMax,
    stateWritesMax: config.settings.current.actionStateKeysMax,
    stateValueBytesMax: config.settings.current.actionStateValueBytesMax,
  };
}

function describeRecord(record: StoredRecord): RunRecord {
  const { id, device, schema, payload, storedAtMs, recordedAtMs, mailId } = record;
  return {
    id: formatUuid(id),
    kind: sentKind(record),
    device: deviceIdOf(device),
    name: schema,
    payload: payload.toString('utf8'),
    time: new Date(storedAtMs).toISOString(),
    ...(recordedAtMs !== undefined && { recordedAt: new Date(recordedAtMs).toISOString() }),
    ...(mailId !== undefined && { mailId: formatUuid(mailId) }),
  };
}

/** Runs an action for a record, and has the result stored and its mails delivered. */
export class ActionExecutor {
  readonly #options: ActionExecutorOptions;

  constructor(options: ActionExecutorOptions) {
    this.#options = options;
  }

  /**
   * Makes one attempt and delivers its mails. `onThreadFree` is called as soon as the code has run.
   * @throws ApiError unavailable if the result could not be stored.
   */
  async attempt(attempt: Attempt, onThreadFree: () => void): Promise<'done' | 'failed' | 'dead'> {
    const { deadLetters, outbox, runJournal } = this.#options;
    const { queue, run } = attempt;
    const { deadLetter } = run;
    if (deadLetter !== undefined && deadLetters.get(queue.id, deadLetter) === undefined) {
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
    const end = await runJournal.commit(attempt, { report, error, mails, reads });
    if (end === undefined) return 'failed';
    if (end.type === 'again') {
      queue.delay(run, end.afterMs);
      return 'failed';
    }
    // Order matters: the entry in flight is counted before the run counts as decided, as its dead letter was, all before
    // anything else may start.
    const sending = end.type === 'done' ? end.sending : undefined;
    const delivery = sending && outbox.deliver(sending);
    queue.decided(run);
    await delivery;
    queue.finish(run);
    return end.type;
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
}
