import { KeyedMutex } from '../../core/async.ts';
import { ApiError } from '../../core/errors.ts';
import { formatUuid, generateUuid } from '../../core/uuid.ts';
import type { FleetSnapshot } from '../../declarations/fleet.ts';
import type { Page } from '../../domain/shard.ts';
import type { Action, ActionDraft, ActionTest, ActionVersion } from './declaration/action.ts';
import { checkDraft, checkTestRecord } from './declaration/action-draft.ts';
import type { ActionChange } from './declaration/actions.ts';
import { describeDeadLetter, recordOf, type StoredActionDeadLetter } from './outbox/dead-letters.ts';
import type { Dispatcher, DispatcherOptions } from './queue/dispatcher.ts';
import { isLineWanted, isRunWanted } from './runs/history.ts';
import { Trials, trialFailureOf } from './runs/trial.ts';
import type {
  ActionDeadLetter,
  ActionLogLine,
  ActionService,
  ActionStatus,
  LogQuery,
  Run,
  RunQuery,
  RunTrial,
  TestOutcome,
} from './service.ts';
import { type ActionJournal, actionKey, actionShardKey, numberValue, removeActionRows } from './tables.ts';

/** Rows of one table removed per transaction. */
const removedMax = 1_000;

/**
 * Moves the cursors of an action to the ends of the logs, so that it skips what was stored before. Durable when it
 * settles.
 */
async function startAtEnds(journal: ActionJournal, id: string, logEnds: readonly number[]): Promise<void> {
  const action = actionKey(id);
  const { tables } = journal;
  await journal.commit(() => {
    removeActionRows(tables.done, action);
    removeActionRows(tables.behind, action);
    removeActionRows(tables.relocated, action);
    for (const [shard, end] of logEnds.entries()) {
      tables.positions.putSync(actionShardKey(action, shard), numberValue(end));
    }
  });
}

/** Removes everything of a deleted action except the mails it has already sent. */
async function forgetAction(journal: ActionJournal, id: string): Promise<void> {
  const action = actionKey(id);
  const { outbox: _, ...tables } = journal.tables;
  for (const table of Object.values(tables)) {
    let removed: number;
    do {
      removed = 0;
      await journal.commit(() => {
        removed = removeActionRows(table, action, removedMax);
      });
    } while (removed === removedMax);
  }
}

export interface ActionServiceOptions extends DispatcherOptions {
  dispatcher: Dispatcher;
  fleet(fleetId: string): FleetSnapshot;
}

/** The operations of the admin API on actions. */
export class LocalActionService implements ActionService {
  readonly #options: ActionServiceOptions;
  readonly #dispatcher: Dispatcher;
  readonly #trials: Trials;
  readonly #changes = new KeyedMutex<string>();

  constructor(options: ActionServiceOptions) {
    this.#options = options;
    this.#dispatcher = options.dispatcher;
    const { dispatcher } = options;
    this.#trials = new Trials({
      ...options,
      onThread: (fleetId, work) => dispatcher.tests.onThread(fleetId, work),
    });
  }

  async list(fleetId: string): Promise<ActionStatus[]> {
    const logEnds = await this.#dispatcher.logEnds();
    return this.#options.actions.list(fleetId).map((action) => this.#statusAt(action, logEnds));
  }

  async *all(): AsyncGenerator<ActionStatus> {
    const logEnds = await this.#dispatcher.logEnds();
    for (const action of this.#options.actions.all()) yield this.#statusAt(action, logEnds);
  }

  async get(fleetId: string, name: string): Promise<ActionStatus> {
    return this.#status(this.#options.actions.get(fleetId, name));
  }

  version(fleetId: string, name: string, number: number): ActionVersion {
    return this.#options.actions.version(fleetId, name, number);
  }

  async put(
    fleetId: string,
    name: string,
    draft: ActionDraft,
    { force, ...change }: ActionChange & { force: boolean },
  ): Promise<{ status: ActionStatus; isNew: boolean; tests: readonly TestOutcome[] }> {
    const { actions, config, journal, fleet } = this.#options;
    checkDraft(draft, fleet(fleetId).schemas, config);
    const { code, tests } = await this.#dispatcher.tests.admit(fleetId, async () => {
      const compiled = await this.#trials.compile({ fleetId, name }, draft);
      return { code: compiled, tests: await this.#trials.test({ fleetId, name }, draft, compiled) };
    });
    const failed = tests.filter(({ reason }) => reason !== undefined);
    if (failed.length > 0 && !force) throw trialFailureOf(failed);
    return this.#inTurn(fleetId, name, async () => {
      // Read again: it may have been put or deleted while this one was compiled and tested.
      const known = actions.list(fleetId).find((one) => one.name === name);
      const id = known?.id ?? formatUuid(generateUuid());
      // The cursors are on disk before the action is: no record is missed, and none runs that was stored before the
      // action was there or while it was disabled.
      if (known === undefined || (change.enabled === true && !known.enabled)) {
        await startAtEnds(journal, id, await this.#dispatcher.logEnds());
      }
      const { action, isNew } = await actions
        .put(fleetId, name, { ...draft, code }, { ...change, id })
        .catch(async (error: unknown) => {
          if (known === undefined) await forgetAction(journal, id).catch(() => {});
          throw error;
        });
      await this.#restart(action);
      return { status: await this.#status(action), isNew, tests };
    });
  }

  async change(fleetId: string, name: string, change: ActionChange): Promise<ActionStatus> {
    const { actions, journal } = this.#options;
    return this.#inTurn(fleetId, name, async () => {
      const before = actions.get(fleetId, name);
      if (change.enabled === true && !before.enabled) {
        await startAtEnds(journal, before.id, await this.#dispatcher.logEnds());
      }
      const action = await actions.change(fleetId, name, change);
      await this.#restart(action);
      return this.#status(action);
    });
  }

  async rollback(fleetId: string, name: string, number: number): Promise<ActionStatus> {
    return this.#inTurn(fleetId, name, async () => {
      const action = await this.#options.actions.rollback(fleetId, name, number);
      await this.#restart(action);
      return this.#status(action);
    });
  }

  async delete(fleetId: string, name: string): Promise<void> {
    await this.#inTurn(fleetId, name, async () => {
      const action = await this.#options.actions.delete(fleetId, name);
      await this.#dispatcher.end(action);
      await forgetAction(this.#options.journal, action.id);
      this.#dispatcher.forget(action);
    });
  }

  async test(
    fleetId: string,
    name: string,
    record: ActionTest['record'],
    draft?: ActionDraft,
  ): Promise<RunTrial> {
    const { actions, config, fleet } = this.#options;
    checkTestRecord(record, 'the test', config);
    const tried = { fleetId, name };
    const { tests } = this.#dispatcher;
    const known = actions.list(fleetId).find((one) => one.name === name);
    if (draft !== undefined) {
      checkDraft(draft, fleet(fleetId).schemas, config);
      return tests.admit(fleetId, async () => {
        const code = await this.#trials.compile(tried, draft);
        return this.#trials.try(tried, draft, code, record, known);
      });
    }
    const version = actions.current(actions.get(fleetId, name));
    return tests.admit(fleetId, () => this.#trials.try(tried, version, version.code, record, known));
  }

  runs(fleetId: string, name: string, query: RunQuery): Page<Run> {
    const id = this.#idOf(fleetId, name);
    return this.#dispatcher.executor.runs.page(id, query, (run) => isRunWanted(run, query));
  }

  logs(fleetId: string, name: string, query: LogQuery): Page<ActionLogLine> {
    const id = this.#idOf(fleetId, name);
    return this.#dispatcher.executor.lines.page(id, query, (line) => isLineWanted(line, query));
  }

  deadLetters(
    fleetId: string,
    name: string,
    query: Pick<RunQuery, 'after' | 'limit'>,
  ): Page<ActionDeadLetter> {
    const { items, next } = this.#dispatcher.executor.deadLetters.page(
      this.#idOf(fleetId, name),
      query,
      () => true,
    );
    return { items: items.map(describeDeadLetter), next };
  }

  deadLetter(fleetId: string, name: string, number: number): ActionDeadLetter {
    return describeDeadLetter(this.#deadLetter(this.#idOf(fleetId, name), number));
  }

  async replay(fleetId: string, name: string, number?: number): Promise<number> {
    const action = this.#options.actions.get(fleetId, name);
    const letters = this.#chosen(action, number);
    await this.#dispatcher.started(action);
    let replayed = 0;
    for (const letter of letters) {
      if (letter.mails.length > 0) {
        if (await this.#dispatcher.resendMails(action, letter)) replayed += 1;
        continue;
      }
      // Read again each time: it may be replaced while mails are sent again.
      const queue = this.#dispatcher.queue(action);
      if (queue === undefined)
        throw new ApiError('limit_reached', { msg: 'This action is disabled. Enable it first.' });
      if (queue.replay(letter.number, recordOf(letter))) replayed += 1;
    }
    return replayed;
  }

  async drop(fleetId: string, name: string, number?: number): Promise<number> {
    const action = this.#options.actions.get(fleetId, name);
    const letters = this.#chosen(action, number);
    return this.#dispatcher.dropDeadLetters(action, letters);
  }

  /** Serializes the changes of one action: none starts from the half-done state of another. */
  #inTurn<T>(fleetId: string, name: string, change: () => Promise<T>): Promise<T> {
    return this.#changes.run(`${fleetId} ${name}`, change);
  }

  async #status(action: Action): Promise<ActionStatus> {
    return this.#statusAt(action, await this.#dispatcher.logEnds());
  }

  #statusAt(action: Action, logEnds: readonly number[]): ActionStatus {
    const queue = this.#dispatcher.queue(action);
    return {
      action,
      current: this.#options.actions.current(action),
      held: this.#options.journal.mayGrow() ? queue?.held : 'disk_full',
      inHand: this.#dispatcher.inHand(action),
      behind: this.#dispatcher.behind(action, logEnds),
      deadLetters: queue?.deadLetters ?? this.#dispatcher.executor.deadLetters.count(actionKey(action.id)),
      devicesBehind: queue?.devicesBehind ?? 0,
      runsLastMinute: queue?.rate.lastMinute ?? 0,
      attempts: this.#dispatcher.attempts.of(action),
    };
  }

  async #restart(action: Action): Promise<void> {
    await this.#dispatcher.end(action);
    if (action.enabled) this.#dispatcher.restart(action);
  }

  #idOf(fleetId: string, name: string): Buffer {
    this.#options.journal.refresh();
    return actionKey(this.#options.actions.get(fleetId, name).id);
  }

  #deadLetter(id: Buffer, number: number): StoredActionDeadLetter {
    const letter = this.#dispatcher.executor.deadLetters.get(id, number);
    if (letter === undefined) throw new ApiError('dead_letter_not_found');
    return letter;
  }

  #chosen(action: Action, number: number | undefined): StoredActionDeadLetter[] {
    const id = this.#idOf(action.fleetId, action.name);
    if (number !== undefined) return [this.#deadLetter(id, number)];
    return [...this.#dispatcher.executor.deadLetters.all(id)];
  }
}
