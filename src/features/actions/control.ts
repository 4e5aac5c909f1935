import { KeyedMutex } from '../../core/async.ts';
import { formatUuid, generateUuid } from '../../core/uuid.ts';
import type { FleetSnapshot } from '../../declarations/fleet.ts';
import type { Page } from '../../domain/page.ts';
import { Collection } from '../../storage/tables/collection.ts';
import { rangeUnder } from '../../storage/tables/key-codec.ts';
import { Cursors } from '../records/cursor.ts';
import type { Action, ActionDraft, ActionVersion } from './declaration/action.ts';
import { checkDraft, checkTest, checkTestRecord } from './declaration/action-draft.ts';
import type { ActionChange } from './declaration/actions.ts';
import type { TypeFault } from './pool/type-check.ts';
import { type CheckedCode, refuseFaults } from './pool/type-checker.ts';
import type { Dispatcher, DispatcherOptions } from './queue/dispatcher.ts';
import { FailureTallies } from './runs/failures.ts';
import { isLineWanted, isRunWanted } from './runs/history.ts';
import { StateEditor } from './runs/state-editor.ts';
import { Trials, trialFailureOf } from './runs/trial.ts';
import type {
  ActionLogLine,
  ActionService,
  ActionStatus,
  LogQuery,
  Run,
  RunQuery,
  RunTrial,
  ShownAction,
  StateEntry,
  StateQuery,
  TestOutcome,
  TrialInput,
} from './service.ts';
import { type ActionJournal, actionKey, behindTable } from './tables.ts';

/** Rows of one table removed per transaction. */
const removedMax = 1_000;

/**
 * Moves the cursors of an action to the ends of the logs, so that it skips what was stored before. Durable when it
 * settles.
 */
async function startAtEnds(journal: ActionJournal, id: string, logEnds: readonly number[]): Promise<void> {
  const action = actionKey(id);
  await journal.commit(() => {
    new Collection(journal, behindTable).deletePrefix([action]);
    new Cursors(journal).place(action, logEnds);
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
        const keys = [...table.keys({ ...rangeUnder(action), limit: removedMax })];
        for (const key of keys) table.delete(key);
        removed = keys.length;
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
  readonly #failures: FailureTallies;
  readonly #states: StateEditor;
  readonly #changes = new KeyedMutex<string>();

  constructor(options: ActionServiceOptions) {
    this.#options = options;
    this.#dispatcher = options.dispatcher;
    const { config, dispatcher, journal } = options;
    this.#failures = new FailureTallies(dispatcher.executor.runs);
    this.#states = new StateEditor(journal, config.settings);
    this.#trials = new Trials({
      ...options,
      onThread: (fleetId, work) => dispatcher.tests.onThread(fleetId, work),
    });
  }

  async list(fleetId: string): Promise<ShownAction[]> {
    const logEnds = await this.#dispatcher.logEnds();
    return this.#options.actions.list(fleetId).map((action) => this.#shownAt(action, logEnds));
  }

  async *all(): AsyncGenerator<ActionStatus> {
    const logEnds = await this.#dispatcher.logEnds();
    for (const action of this.#options.actions.all()) yield this.#statusAt(action, logEnds);
  }

  async get(fleetId: string, name: string): Promise<ShownAction> {
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
  ): Promise<{ status: ShownAction; isNew: boolean; tests: readonly TestOutcome[] }> {
    const { actions, config, journal, fleet, types } = this.#options;
    checkDraft(draft, fleet(fleetId).schemas, config);
    const { code, tests } = await this.#dispatcher.tests.admit(fleetId, async () => {
      const compiled = await this.#trials.compile({ fleetId, name }, draft);
      // After the compiler, whose errors say more of a source that is none.
      if (draft.language === 'typescript' && !force) {
        refuseFaults(await types.check(draft, fleet(fleetId).schemas));
      }
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

  check(fleetId: string, code: CheckedCode): Promise<TypeFault[]> {
    const { fleet, types } = this.#options;
    const { schemas } = fleet(fleetId);
    return this.#dispatcher.tests.admit(fleetId, () => types.check(code, schemas));
  }

  async change(fleetId: string, name: string, change: ActionChange): Promise<ShownAction> {
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

  async rollback(fleetId: string, name: string, number: number): Promise<ShownAction> {
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
      await this.#dispatcher.forget(action);
      this.#failures.forget(actionKey(action.id));
    });
  }

  async test(fleetId: string, name: string, input: TrialInput, draft?: ActionDraft): Promise<RunTrial> {
    const { actions, config, fleet } = this.#options;
    if ('test' in input) checkTest(input.test, 'the test', config);
    else checkTestRecord(input.record, 'the test', config);
    const tried = { fleetId, name };
    const { tests } = this.#dispatcher;
    const known = actions.list(fleetId).find((one) => one.name === name);
    const attempt = (tested: ActionDraft, code: string): Promise<RunTrial> =>
      'test' in input
        ? this.#trials.tryTest(tried, tested, code, input.test)
        : this.#trials.try(tried, tested, code, input.record, known);
    if (draft !== undefined) {
      checkDraft(draft, fleet(fleetId).schemas, config);
      return tests.admit(fleetId, async () => attempt(draft, await this.#trials.compile(tried, draft)));
    }
    const version = actions.current(actions.get(fleetId, name));
    return tests.admit(fleetId, () => attempt(version, version.code));
  }

  listState(fleetId: string, name: string, query: StateQuery): Page<StateEntry> {
    return this.#states.list(this.#idOf(fleetId, name), query);
  }

  getState(fleetId: string, name: string, key: string): StateEntry {
    return this.#states.get(this.#idOf(fleetId, name), key);
  }

  // In turn with a deletion, behind which nothing of the action may be stored.
  setState(fleetId: string, name: string, key: string, value: unknown): Promise<StateEntry> {
    return this.#inTurn(fleetId, name, async () => this.#states.set(this.#idOf(fleetId, name), key, value));
  }

  deleteState(fleetId: string, name: string, key?: string): Promise<number> {
    return this.#inTurn(fleetId, name, async () => this.#states.delete(this.#idOf(fleetId, name), key));
  }

  runs(fleetId: string, name: string, query: RunQuery): Page<Run> {
    const id = this.#idOf(fleetId, name);
    return this.#dispatcher.executor.runs.page(id, query, (run) => isRunWanted(run, query));
  }

  logs(fleetId: string, name: string, query: LogQuery): Page<ActionLogLine> {
    const id = this.#idOf(fleetId, name);
    return this.#dispatcher.executor.lines.page(id, query, (line) => isLineWanted(line, query));
  }

  /** Serializes the changes of one action: none starts from the half-done state of another. */
  #inTurn<T>(fleetId: string, name: string, change: () => Promise<T>): Promise<T> {
    return this.#changes.run(`${fleetId} ${name}`, change);
  }

  async #status(action: Action): Promise<ShownAction> {
    return this.#shownAt(action, await this.#dispatcher.logEnds());
  }

  #shownAt(action: Action, logEnds: readonly number[]): ShownAction {
    this.#options.journal.refresh();
    const failures = this.#failures.of(actionKey(action.id), action.version);
    return { ...this.#statusAt(action, logEnds), failures };
  }

  #statusAt(action: Action, logEnds: readonly number[]): ActionStatus {
    const queue = this.#dispatcher.queue(action);
    return {
      action,
      current: this.#options.actions.current(action),
      held: this.#heldBy(action),
      inHand: this.#dispatcher.inHand(action),
      ...this.#dispatcher.lag(action, logEnds),
      deadLetters: this.#dispatcher.deadLetters.count(actionKey(action.id)),
      devicesBehind: queue?.devicesBehind ?? 0,
      runsLastMinute: queue?.rate.lastMinute ?? 0,
      attempts: this.#dispatcher.attempts.of(action),
    };
  }

  #heldBy(action: Action): ActionStatus['held'] {
    const { hold, journal } = this.#options;
    if (action.enabled && hold.isHeld) return 'server_held';
    return journal.mayGrow() ? this.#dispatcher.queue(action)?.held : 'disk_full';
  }

  async #restart(action: Action): Promise<void> {
    await this.#dispatcher.end(action);
    if (action.enabled) this.#dispatcher.restart(action);
  }

  #idOf(fleetId: string, name: string): Buffer {
    this.#options.journal.refresh();
    return actionKey(this.#options.actions.get(fleetId, name).id);
  }
}
