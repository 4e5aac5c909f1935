import { EventLoopBudget, KeyedMutex } from '../../core/async.ts';
import { ApiError, unavailable } from '../../core/errors.ts';
import { FairShare } from '../../core/fair-share.ts';
import { uuidBytesLength } from '../../core/uuid.ts';
import type { FleetSnapshot } from '../../declarations/fleet.ts';
import { Reconciler } from '../../declarations/reconciler.ts';
import type { SchemaChecker } from '../../declarations/schema-checks/schema-checker.ts';
import type { Page } from '../../domain/page.ts';
import { Collection } from '../../storage/tables/collection.ts';
import { rangeUnder } from '../../storage/tables/key-codec.ts';
import { Cursors } from '../records/cursor.ts';
import type {
  ActionLogLine,
  ActionStatus,
  ActionWork,
  LogQuery,
  PreparedDraft,
  Run,
  RunQuery,
  RunTrial,
  ShownAction,
  StateEntry,
  StateQuery,
  TrialInput,
} from './action-work.ts';
import { type CheckedCode, refuseFaults } from './compiler/checked-code.ts';
import type { CompilerLossReason } from './compiler/compiler-child.ts';
import type { TypeFault } from './compiler/type-check.ts';
import type { Action, ActionDraft } from './declaration/action.ts';
import { checkDraft, checkPayloadFilter, checkTest, checkTestRecord } from './declaration/action-draft.ts';
import type { Actions } from './declaration/actions.ts';
import type { Dispatcher, DispatcherOptions } from './queue/dispatcher.ts';
import type { Asker } from './queue/schedule.ts';
import { FailureTallies } from './runs/attempt-figures.ts';
import { isLineWanted, isRunWanted } from './runs/history.ts';
import { StateEditor } from './runs/state-editor.ts';
import { Trials } from './runs/trial.ts';
import { type ActionJournal, actionKey, beginTable, behindTable } from './tables.ts';

/** Rows of one table removed per transaction. */
const removedMax = 1_000;

/**
 * Moves the cursors of an action to where it begins, once for each time that it does: it skips what was stored before.
 * Durable when it settles.
 */
async function beginOnce(
  journal: ActionJournal,
  { id, begin }: Action,
  logEndsNow: () => Promise<readonly number[]>,
): Promise<void> {
  const action = actionKey(id);
  const beginId = actionKey(begin.id);
  const begins = new Collection(journal, beginTable);
  journal.refresh();
  if (begins.get([action])?.[0].equals(beginId) === true) return;
  const logEnds = await logEndsNow();
  await journal.commit(() => {
    begins.put([action], [beginId]);
    new Collection(journal, behindTable).deletePrefix([action]);
    // There are other logs where the number of shards has changed since.
    new Cursors(journal).place(action, begin.logEnds.length === logEnds.length ? begin.logEnds : logEnds);
  });
}

/** The ids of all actions that have anything in the tables but the outbox. */
function* actionsIn(journal: ActionJournal): Generator<Buffer> {
  journal.refresh();
  const { outbox: _, ...tables } = journal.tables;
  for (const table of Object.values(tables)) {
    for (let start: Buffer | undefined = Buffer.alloc(0); start !== undefined; ) {
      const [first]: Buffer[] = [...table.keys({ start, limit: 1 })];
      const action: Buffer | undefined = first && Buffer.from(first.subarray(0, uuidBytesLength));
      if (action !== undefined) yield action;
      start = action && rangeUnder(action).end;
    }
  }
}

/** Removes everything of a deleted action except the mails it has already sent. */
async function forgetAction(journal: ActionJournal, action: Buffer): Promise<void> {
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

/** Removes what is left of actions that were deleted without a leader, or while it was stopped. */
export async function forgetOthers(journal: ActionJournal, actions: Actions): Promise<void> {
  const known = new Set(actions.all().map(({ id }) => actionKey(id).toString('hex')));
  for (const action of [...actionsIn(journal)]) {
    if (!known.has(action.toString('hex'))) await forgetAction(journal, action);
  }
}

export interface ActionWorkOptions extends DispatcherOptions {
  dispatcher: Dispatcher;
  fleet(fleetId: string): FleetSnapshot;
  checker: SchemaChecker;
}

/** The actions that run here: makes them follow their declarations, and serves what only it knows of them. */
export class LocalActionWork implements ActionWork {
  readonly #options: ActionWorkOptions;
  readonly #dispatcher: Dispatcher;
  readonly #trials: Trials;
  /** Tests, checks and deployments under way: operators wait for them, so each fleet may have only its share. */
  readonly #tests: FairShare;
  readonly #failures: FailureTallies;
  readonly #states: StateEditor;
  readonly #searches = new EventLoopBudget();
  readonly #changes = new KeyedMutex<string>();
  readonly #reconciler: Reconciler<Action>;

  constructor(options: ActionWorkOptions) {
    this.#options = options;
    this.#dispatcher = options.dispatcher;
    const { config, dispatcher, journal, log } = options;
    this.#failures = new FailureTallies(dispatcher.runJournal.runs);
    this.#states = new StateEditor(journal, config.settings);
    this.#trials = new Trials({ ...options, schedule: dispatcher.schedule });
    this.#tests = new FairShare(config.actionTestsMax);
    this.#reconciler = new Reconciler({
      declarations: options.actions,
      apply: (action) => this.#apply(action),
      log,
    });
  }

  /** Starts all actions, and makes each follow its declaration from now on. */
  start(): Promise<void> {
    return this.#reconciler.start();
  }

  /** Stops following; the actions run on. */
  stop(): Promise<void> {
    return this.#reconciler.stop();
  }

  followed(): Promise<void> {
    return this.#reconciler.settled();
  }

  async list(fleetId: string): Promise<ShownAction[]> {
    const logEnds = await this.#dispatcher.logEnds();
    return Promise.all(this.#options.actions.list(fleetId).map((action) => this.#shownAt(action, logEnds)));
  }

  async *all(): AsyncGenerator<ActionStatus> {
    const logEnds = await this.#dispatcher.logEnds();
    for (const action of this.#options.actions.all()) yield this.#statusAt(action, logEnds);
  }

  async get(fleetId: string, name: string): Promise<ShownAction> {
    await this.followed();
    return this.#status(this.#options.actions.get(fleetId, name));
  }

  async prepare(
    fleetId: string,
    name: string,
    draft: ActionDraft,
    asker: Asker,
    { force }: { force: boolean },
  ): Promise<PreparedDraft> {
    const { compiler, fleet } = this.#options;
    const tried = { fleetId, name, asker, replaces: 'deployments' } as const;
    return this.#admit(fleetId, async () => {
      const code = await this.#trials.compile(tried, draft);
      // After the compiler, whose errors say more of a source that is none.
      if (draft.language === 'typescript' && !force) {
        refuseFaults(await compiler.check(tried, draft, fleet(fleetId).schemas));
      }
      return { code, tests: await this.#trials.test(tried, draft, code) };
    });
  }

  async test(
    fleetId: string,
    name: string,
    asker: Asker,
    input: TrialInput,
    draft?: ActionDraft,
  ): Promise<RunTrial> {
    const { actions, checker, config, fleet } = this.#options;
    if ('test' in input) checkTest(input.test, 'the test', config);
    else checkTestRecord(input.record, 'the test', config);
    const tried = { fleetId, name, asker };
    const known = actions.list(fleetId).find((one) => one.name === name);
    const attempt = (tested: Pick<ActionDraft, 'on'>, code: string): Promise<RunTrial> =>
      'test' in input
        ? this.#trials.tryTest(tried, tested, code, input.test)
        : this.#trials.try(tried, tested, code, input.record, known);
    if (draft !== undefined) {
      checkDraft(draft, fleet(fleetId).schemas, config);
      await checkPayloadFilter(fleetId, draft, checker);
      return this.#admit(fleetId, async () => attempt(draft, await this.#trials.compile(tried, draft)));
    }
    const version = actions.current(actions.get(fleetId, name));
    return this.#admit(fleetId, () => attempt(version, version.code));
  }

  async check(fleetId: string, asker: Asker, code: CheckedCode): Promise<readonly TypeFault[]> {
    const { compiler, fleet } = this.#options;
    const { schemas } = fleet(fleetId);
    const request = { fleetId, name: code.name, asker, replaces: 'checks' } as const;
    return this.#admit(fleetId, () => compiler.check(request, code, schemas));
  }

  get compilerLosses(): Readonly<Record<CompilerLossReason, number>> {
    return this.#options.compiler.losses;
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

  async runs(fleetId: string, name: string, query: RunQuery): Promise<Page<Run>> {
    const id = this.#idOf(fleetId, name);
    const { runs } = this.#dispatcher.runJournal;
    return runs.page(id, query, (run) => isRunWanted(run, query), this.#turnOf(fleetId));
  }

  run(fleetId: string, name: string, number: number): Run {
    const run = this.#dispatcher.runJournal.runs.get(this.#idOf(fleetId, name), number);
    if (run === undefined) throw new ApiError('run_not_found');
    return run;
  }

  async logs(fleetId: string, name: string, query: LogQuery): Promise<Page<ActionLogLine>> {
    const id = this.#idOf(fleetId, name);
    const { lines } = this.#dispatcher.runJournal;
    return lines.page(id, query, (line) => isLineWanted(line, query), this.#turnOf(fleetId));
  }

  /** Turns of what a fleet searches; in each the journal is read as it is then. */
  #turnOf(fleetId: string): () => Promise<void> {
    return async () => {
      await this.#searches.take(fleetId);
      this.#options.journal.refresh();
    };
  }

  /** @throws ApiError unavailable. */
  async #admit<T>(fleetId: string, work: () => Promise<T>): Promise<T> {
    if (!this.#tests.take(fleetId)) {
      const { actionTestsMax: max } = this.#options.config;
      throw unavailable(
        `Too many tests and deployments of actions in this fleet: it has its share of ${max} (actionTestsMax). Retry later.`,
      );
    }
    try {
      return await work();
    } finally {
      this.#tests.release(fleetId);
    }
  }

  /** Makes an action run as it is declared now; removes everything of a deleted one. */
  #apply(declared: Action): Promise<void> {
    return this.#inTurn(declared.fleetId, declared.name, async () => {
      const { actions, journal } = this.#options;
      await this.#dispatcher.end(declared);
      const action = actions.declared(declared);
      if (action === undefined) {
        const key = actionKey(declared.id);
        await forgetAction(journal, key);
        await this.#dispatcher.forget(declared);
        this.#failures.forget(key);
        return;
      }
      await beginOnce(journal, action, () => this.#dispatcher.logEnds());
      if (action.enabled) this.#dispatcher.restart(action);
    });
  }

  /** Serializes the changes of one action: none starts from the half-done state of another. */
  #inTurn<T>(fleetId: string, name: string, change: () => Promise<T>): Promise<T> {
    return this.#changes.run(`${fleetId} ${name}`, change);
  }

  async #status(action: Action): Promise<ShownAction> {
    return this.#shownAt(action, await this.#dispatcher.logEnds());
  }

  async #shownAt(action: Action, logEnds: readonly number[]): Promise<ShownAction> {
    this.#options.journal.refresh();
    const failures = this.#failures.of(actionKey(action.id), action.version);
    const secondsBehind = await this.#dispatcher.secondsBehind(this.#dispatcher.lag(action, logEnds));
    return { ...this.#statusAt(action, logEnds), failures, secondsBehind };
  }

  #statusAt(action: Action, logEnds: readonly number[]): ActionStatus {
    const queue = this.#dispatcher.queue(action);
    const { behind, lost } = this.#dispatcher.lag(action, logEnds);
    return {
      action,
      current: this.#options.actions.current(action),
      held: this.#heldBy(action),
      inHand: this.#dispatcher.inHand(action),
      behind,
      lost,
      deadLetters: this.#dispatcher.deadLetters.count(actionKey(action.id)),
      devicesBehind: queue?.devicesBehind ?? 0,
      devicesBlocked: queue?.devicesBlocked ?? 0,
      runsLastMinute: this.#dispatcher.attempts.begunInLastMinute(action),
      attempts: this.#dispatcher.attempts.of(action),
    };
  }

  #heldBy(action: Action): ActionStatus['held'] {
    const { hold, journal } = this.#options;
    if (action.enabled && hold.isHeld) return 'server_held';
    return journal.mayGrow() ? this.#dispatcher.queue(action)?.held : 'disk_full';
  }

  #idOf(fleetId: string, name: string): Buffer {
    this.#options.journal.refresh();
    return actionKey(this.#options.actions.get(fleetId, name).id);
  }
}
