import type {
  ActionLogLine,
  ActionStatus,
  ActionsControl,
  LogQuery,
  ParkedRun,
  Run,
  RunQuery,
  RunTrial,
  TestOutcome,
} from '../admin/actions-control.ts';
import { ApiError } from '../core/errors.ts';
import { formatUuid, generateUuid } from '../core/uuid.ts';
import type { Action, ActionDraft, ActionTest, ActionVersion } from '../registry/action.ts';
import { checkDraft, checkTestRecord } from '../registry/action-draft.ts';
import type { ActionChange } from '../registry/actions.ts';
import type { FleetSnapshot } from '../registry/fleet.ts';
import type { Page } from '../shard/shard.ts';
import type { Dispatcher, DispatcherOptions } from './dispatcher.ts';
import { isLineWanted, isRunWanted } from './history.ts';
import { forgetAction, startAtEnds } from './lifecycle.ts';
import { describeParked, type KeptParkedRun, recordOf } from './parked.ts';
import { actionKey } from './tables.ts';
import { failureOf, Trials } from './trial.ts';

export interface ControlOptions extends DispatcherOptions {
  dispatcher: Dispatcher;
  fleet(fleetId: string): FleetSnapshot;
}

/** What operators do with actions. Changes of one action come one after another from the registry's own order. */
export class Control implements ActionsControl {
  readonly #options: ControlOptions;
  readonly #dispatcher: Dispatcher;
  readonly #trials: Trials;

  constructor(options: ControlOptions) {
    this.#options = options;
    this.#dispatcher = options.dispatcher;
    this.#trials = new Trials(options);
  }

  list(fleetId: string): ActionStatus[] {
    return this.#options.actions.list(fleetId).map((action) => this.#status(action));
  }

  get(fleetId: string, name: string): ActionStatus {
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
    const code = await this.#trials.compile(draft);
    const known = actions.list(fleetId).find((one) => one.name === name);
    const tests = await this.#trials.test(fleetId, draft, code);
    const failed = tests.filter(({ reason }) => reason !== undefined);
    if (failed.length > 0 && !force) throw failureOf(failed);
    // Its place in the logs is on disk before the action is: then no record is missed, and none is run that
    // was there before.
    const id = known?.id ?? formatUuid(generateUuid());
    if (known === undefined) await startAtEnds(journal, id, await this.#dispatcher.logEnds());
    const { action, isNew } = await actions.put(fleetId, name, { ...draft, code }, { ...change, id });
    await this.#restart(action);
    return { status: this.#status(action), isNew, tests };
  }

  async change(fleetId: string, name: string, change: ActionChange): Promise<ActionStatus> {
    const { actions, journal } = this.#options;
    const before = actions.get(fleetId, name);
    if (change.enabled === true && !before.enabled) {
      await startAtEnds(journal, before.id, await this.#dispatcher.logEnds());
    }
    const action = await actions.change(fleetId, name, change);
    await this.#restart(action);
    return this.#status(action);
  }

  async rollback(fleetId: string, name: string, number: number): Promise<ActionStatus> {
    const action = await this.#options.actions.rollback(fleetId, name, number);
    await this.#restart(action);
    return this.#status(action);
  }

  async delete(fleetId: string, name: string): Promise<void> {
    const action = await this.#options.actions.delete(fleetId, name);
    await this.#dispatcher.end(action);
    await forgetAction(this.#options.journal, action.id);
    this.#dispatcher.forget(action);
  }

  async test(
    fleetId: string,
    name: string,
    record: ActionTest['record'],
    draft?: ActionDraft,
  ): Promise<RunTrial> {
    const { actions, config, fleet } = this.#options;
    checkTestRecord(record, 'the test', config);
    const known = actions.list(fleetId).find((one) => one.name === name);
    if (draft !== undefined) {
      checkDraft(draft, fleet(fleetId).schemas, config);
      return this.#trials.try(fleetId, draft, await this.#trials.compile(draft), record, known);
    }
    const version = actions.current(actions.get(fleetId, name));
    return this.#trials.try(fleetId, version, version.code, record, known);
  }

  runs(fleetId: string, name: string, query: RunQuery): Page<Run> {
    const id = this.#idOf(fleetId, name);
    return this.#dispatcher.runner.runs.page(id, query, (run) => isRunWanted(run, query));
  }

  logs(fleetId: string, name: string, query: LogQuery): Page<ActionLogLine> {
    const id = this.#idOf(fleetId, name);
    return this.#dispatcher.runner.lines.page(id, query, (line) => isLineWanted(line, query));
  }

  parked(fleetId: string, name: string, query: Pick<RunQuery, 'after' | 'limit'>): Page<ParkedRun> {
    const { items, next } = this.#dispatcher.runner.parked.page(this.#idOf(fleetId, name), query, () => true);
    return { items: items.map(describeParked), next };
  }

  parkedRun(fleetId: string, name: string, number: number): ParkedRun {
    return describeParked(this.#parkedRun(this.#idOf(fleetId, name), number));
  }

  async retry(fleetId: string, name: string, number?: number): Promise<number> {
    const action = this.#options.actions.get(fleetId, name);
    const kept = this.#chosen(action, number);
    const lane = this.#dispatcher.lane(action);
    let retried = 0;
    for (const one of kept) {
      if (one.mails.length > 0) await this.#dispatcher.sendAgain(action, one);
      else if (lane === undefined)
        throw new ApiError('limit_reached', { msg: 'The action is disabled: enable it first.' });
      else {
        const run = { lane, record: recordOf(one), shard: undefined, attempt: 1, conflicts: 0 };
        if (!lane.pushParked({ ...run, parked: one.number })) continue;
      }
      retried += 1;
    }
    return retried;
  }

  async drop(fleetId: string, name: string, number?: number): Promise<number> {
    const action = this.#options.actions.get(fleetId, name);
    const kept = this.#chosen(action, number);
    await this.#dispatcher.dropParked(action, kept);
    return kept.length;
  }

  #status(action: Action): ActionStatus {
    const lane = this.#dispatcher.lane(action);
    return {
      action,
      current: this.#options.actions.current(action),
      held: lane?.held,
      inHand: this.#dispatcher.inHand(action),
      behind: this.#dispatcher.behind(action),
      parked: lane?.parked ?? this.#dispatcher.runner.parked.count(actionKey(action.id)),
      runsLastMinute: lane?.pace.lastMinute ?? 0,
      attempts: this.#dispatcher.attemptsOf(action),
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

  #parkedRun(id: Buffer, number: number): KeptParkedRun {
    const kept = this.#dispatcher.runner.parked.get(id, number);
    if (kept === undefined) throw new ApiError('run_not_found');
    return kept;
  }

  #chosen(action: Action, number: number | undefined): KeptParkedRun[] {
    const id = this.#idOf(action.fleetId, action.name);
    if (number !== undefined) return [this.#parkedRun(id, number)];
    return [...this.#dispatcher.runner.parked.all(id)];
  }
}
