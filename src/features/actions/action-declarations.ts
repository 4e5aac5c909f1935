import type { FleetSnapshot } from '../../declarations/fleet.ts';
import type { SchemaChecker } from '../../declarations/schema-checks/schema-checker.ts';
import type { LogFollower } from '../records/log-follower.ts';
import type { ActionWork, ShownAction, TestOutcome } from './action-work.ts';
import type { ActionConfig } from './config.ts';
import type { ActionDraft, ActionVersion } from './declaration/action.ts';
import { checkDraft, checkPayloadFilter } from './declaration/action-draft.ts';
import type { ActionChange, Actions } from './declaration/actions.ts';
import type { Asker } from './queue/schedule.ts';
import { trialFailureOf } from './runs/trial.ts';

export interface ActionDeclarationOptions {
  config: ActionConfig;
  actions: Actions;
  fleet(fleetId: string): FleetSnapshot;
  checker: SchemaChecker;
  follower: Pick<LogFollower, 'ends'>;
  /** Work of the leader, whichever node that is. */
  work: ActionWork;
}

/**
 * Declares actions for the admin API of any node. What is declared is so without the leader; its status is the leader's,
 * which acts on every declaration before it tells of it. Every method throws ApiError fleet_not_found, or action_not_found.
 */
export class ActionDeclarations {
  readonly #options: ActionDeclarationOptions;

  constructor(options: ActionDeclarationOptions) {
    this.#options = options;
  }

  /** @throws ApiError action_version_not_found. */
  version(fleetId: string, name: string, number: number): ActionVersion {
    return this.#options.actions.version(fleetId, name, number);
  }

  /**
   * Deploys a new version. The code must compile even with `force`; errors in its types and a failing test refuse it only
   * without.
   * @throws ApiError invalid_action, action_test_failed, limit_reached, replaced by a newer one.
   */
  async put(
    fleetId: string,
    name: string,
    draft: ActionDraft,
    asker: Asker,
    { force, ...change }: ActionChange & { force: boolean },
  ): Promise<{ status: ShownAction; isNew: boolean; tests: readonly TestOutcome[] }> {
    const { actions, checker, config, fleet, follower, work } = this.#options;
    checkDraft(draft, fleet(fleetId).schemas, config);
    await checkPayloadFilter(fleetId, draft, checker);
    const { code, tests } = await work.prepare(fleetId, name, draft, asker, { force });
    const failed = tests.filter(({ reason }) => reason !== undefined);
    if (failed.length > 0 && !force) throw trialFailureOf(failed);
    const { isNew } = await actions.put(
      fleetId,
      name,
      { ...draft, code },
      await follower.ends(),
      change,
      asker.name,
    );
    return { status: await work.get(fleetId, name), isNew, tests };
  }

  /** Null: the configured default. A disabled action skips records stored meanwhile. */
  async change(fleetId: string, name: string, change: ActionChange): Promise<ShownAction> {
    const { actions, follower, work } = this.#options;
    await actions.change(fleetId, name, change, await follower.ends());
    return work.get(fleetId, name);
  }

  /** @throws ApiError action_version_not_found. */
  async rollback(fleetId: string, name: string, number: number): Promise<ShownAction> {
    const { actions, work } = this.#options;
    await actions.rollback(fleetId, name, number);
    return work.get(fleetId, name);
  }

  async delete(fleetId: string, name: string): Promise<void> {
    const { actions, work } = this.#options;
    await actions.delete(fleetId, name);
    // It is deleted all the same: without a leader nothing runs.
    await work.followed().catch(() => {});
  }
}
