import { Type } from 'typebox';
import type { AdminApp, Handler } from '../../admin-api/request/context.ts';
import { routesOf } from '../../admin-api/request/route.ts';
import type { Principal } from '../../admin-api/request/scope.ts';
import { timeTextOf } from '../../admin-api/request/times.ts';
import {
  type ActionChangeBody,
  type ActionDocument,
  type ActionDraftBody,
  type ActionTestDocument,
  type ActionVersionDocument,
  actionChangeBody,
  actionDocument,
  actionVersionDocument,
  checkBody,
  checkDocument,
  deployedActionDocument,
  newVersionBody,
  rollbackBody,
  trialBody,
} from '../../contract/action.ts';
import { type TrialDocument, trialDocument } from '../../contract/action-run.ts';
import { errorAnswers, fleetPath, listOf, namedPath } from '../../contract/document.ts';
import { testsPerActionMax } from '../../core/bounds.ts';
import { ApiError } from '../../core/errors.ts';
import { schemaNamePattern } from '../../core/identity.ts';
import type { ActionDeclarations } from './action-declarations.ts';
import type { ActionWork, RunTrial, ShownAction } from './action-work.ts';
import type { ActionConfig } from './config.ts';
import type { ActionDraft, ActionFilter, ActionTest, ActionVersion } from './declaration/action.ts';
import { sourceBytesMax } from './declaration/action-draft.ts';
import type { Asker } from './queue/schedule.ts';

interface Needs {
  config: ActionConfig;
  actions: ActionDeclarations;
  actionWork: ActionWork;
}

const versionPath = Type.Interface([namedPath], { version: Type.Integer({ minimum: 1 }) });

/** Room for a source with every character escaped, and for a body for each test, its mails and the filter. */
function bodyLimitOf(config: ActionConfig): number {
  return 2 * sourceBytesMax + config.schemaBytesMax + 2 * testsPerActionMax * config.bodyBytesMax;
}

/** The current version, to take absent fields from; undefined where there is no such action yet. */
async function running(work: ActionWork, fleetId: string, name: string): Promise<ActionVersion | undefined> {
  try {
    return (await work.get(fleetId, name)).current;
  } catch (error) {
    if (error instanceof ApiError && error.code === 'action_not_found') return undefined;
    throw error;
  }
}

function mergedFilter(before: ActionFilter, change: ActionDraftBody['filter'] = {}): ActionFilter {
  const kept = Object.entries({ ...before, ...change }).filter(([, value]) => value !== null);
  return Object.fromEntries(kept) as ActionFilter;
}

function testOf({ state_after: stateAfter, ...test }: ActionTestDocument): ActionTest {
  return { ...test, ...(stateAfter !== undefined && { stateAfter }) } as ActionTest;
}

function describeTest({ stateAfter, ...test }: ActionTest): ActionTestDocument {
  return { ...test, ...(stateAfter !== undefined && { state_after: stateAfter }) } as ActionTestDocument;
}

/** `before`: the current version, if any. */
function actionDraftOf(body: ActionDraftBody, before: ActionVersion | undefined): ActionDraft {
  return {
    language: body.language,
    source: body.source,
    on: body.on ?? before?.on ?? [],
    filter: mergedFilter(before?.filter ?? {}, body.filter),
    tests: body.tests?.map(testOf) ?? before?.tests ?? [],
  };
}

/** Includes the effective rate: the action's own or the configured one. */
function describeAction(
  {
    action,
    current,
    held,
    inHand,
    behind,
    lost,
    deadLetters,
    devicesBehind,
    devicesBlocked,
    runsLastMinute,
    failures,
  }: ShownAction,
  config: Pick<ActionConfig, 'settings'>,
): ActionDocument {
  return {
    name: action.name,
    enabled: action.enabled,
    version: action.version,
    versions: action.versions.map((one) => ({
      version: one.number,
      created_at: timeTextOf(one.createdAtMs),
    })),
    language: current.language,
    on: [...current.on],
    filter: filterOf(current),
    runs_per_second_max: action.runsPerSecondMax ?? config.settings.current.actionRunsPerSecondMax,
    held: held ?? null,
    in_hand: inHand,
    behind,
    lost,
    dead_letters: deadLetters,
    devices_behind: devicesBehind,
    devices_blocked: devicesBlocked,
    runs_last_minute: runsLastMinute,
    failures: failures.sinceSuccess,
    last_error: failures.last?.error ?? null,
    last_failed_at: timeTextOf(failures.last?.atMs),
    created_at: timeTextOf(action.createdAtMs),
  };
}

function describeVersion(version: ActionVersion): ActionVersionDocument {
  return {
    version: version.number,
    created_at: timeTextOf(version.createdAtMs),
    language: version.language,
    on: [...version.on],
    filter: filterOf(version),
    tests: version.tests.map(describeTest),
    source: version.source,
  };
}

function filterOf({ filter }: ActionVersion): ActionDocument['filter'] {
  return filter as ActionDocument['filter'];
}

/** Omits absent fields, as a field that is present is a change. */
function changeOf({ enabled, runs_per_second_max: rate }: ActionChangeBody): {
  enabled?: boolean;
  runsPerSecondMax?: number | null;
} {
  return {
    ...(enabled !== undefined && { enabled }),
    ...(rate !== undefined && { runsPerSecondMax: rate }),
  };
}

function askerOf(principal: Principal | null): Asker {
  return { token: principal?.id ?? 'bootstrap', name: principal?.name ?? '' };
}

const listing = {
  summary: 'List actions',
  params: fleetPath,
  response: { 200: listOf(actionDocument), ...errorAnswers },
};

const listActions =
  ({ config, actionWork }: Needs): Handler<typeof listing> =>
  async ({ params }) => {
    const all = await actionWork.list(params.fleet_id);
    return { items: all.map((status) => describeAction(status, config)), next: null };
  };

const deployment = {
  summary: 'Deploy a version of an action',
  description: 'Deploys a new version once its tests pass.',
  params: namedPath,
  body: newVersionBody,
  response: { 200: deployedActionDocument, 201: deployedActionDocument, ...errorAnswers },
};

const deployAction =
  ({ config, actions, actionWork }: Needs): Handler<typeof deployment> =>
  async ({ params: { fleet_id, name }, body, principal }, reply) => {
    if (!schemaNamePattern.test(name)) {
      throw new ApiError('bad_request', { msg: 'An action name is 1 to 255 letters, digits, _ and -.' });
    }
    const { status, isNew, tests } = await actions.put(
      fleet_id,
      name,
      actionDraftOf(body, await running(actionWork, fleet_id, name)),
      askerOf(principal),
      { force: body.force ?? false, ...changeOf(body) },
    );
    reply.code(isNew ? 201 : 200);
    return {
      ...describeAction(status, config),
      tests: tests.map(({ test, reason }) => ({
        test,
        passed: reason === undefined,
        reason: reason ?? null,
      })),
    };
  };

const showing = {
  summary: 'Show an action',
  params: namedPath,
  response: { 200: actionDocument, ...errorAnswers },
};

const showAction =
  ({ config, actionWork }: Needs): Handler<typeof showing> =>
  async ({ params: { fleet_id, name } }) =>
    describeAction(await actionWork.get(fleet_id, name), config);

const changing = {
  summary: 'Enable, disable or pace an action',
  description: 'A disabled action skips records stored meanwhile.',
  params: namedPath,
  body: actionChangeBody,
  response: { 200: actionDocument, ...errorAnswers },
};

const changeAction =
  ({ config, actions }: Needs): Handler<typeof changing> =>
  async ({ params: { fleet_id, name }, body }) =>
    describeAction(await actions.change(fleet_id, name, changeOf(body)), config);

const deletion = {
  summary: 'Delete an action',
  params: namedPath,
  response: { 204: Type.Null(), ...errorAnswers },
};

const deleteAction =
  ({ actions }: Needs): Handler<typeof deletion> =>
  async ({ params: { fleet_id, name } }, reply) => {
    await actions.delete(fleet_id, name);
    return reply.code(204).send(null);
  };

const showingVersion = {
  summary: 'Show a version of an action',
  params: versionPath,
  response: { 200: actionVersionDocument, ...errorAnswers },
};

const showVersion =
  ({ actions }: Needs): Handler<typeof showingVersion> =>
  async ({ params: { fleet_id, name, version } }) =>
    describeVersion(actions.version(fleet_id, name, version));

const rollback = {
  summary: 'Roll an action back to another version',
  description: 'Makes a retained version the current one, under its own number.',
  params: namedPath,
  body: rollbackBody,
  response: { 200: actionDocument, ...errorAnswers },
};

const rollBack =
  ({ config, actions }: Needs): Handler<typeof rollback> =>
  async ({ params: { fleet_id, name }, body }) =>
    describeAction(await actions.rollback(fleet_id, name, body.version), config);

function describeTrial(trial: RunTrial): TrialDocument {
  return {
    error: trial.error ?? null,
    reason: trial.reason ?? null,
    records: trial.records,
    mails: trial.mails.map((mail) => ({
      record: mail.record,
      device: mail.device,
      name: mail.name,
      payload: JSON.parse(mail.payload),
      ttl_seconds: mail.ttlSeconds ?? null,
    })),
    state: trial.state.map(({ key, value }) =>
      value === null ? { key, removed: true } : { key, removed: false, value: JSON.parse(value) },
    ),
    log: [...trial.log],
    cpu_milliseconds: trial.cpuMilliseconds,
    wall_milliseconds: trial.wallMilliseconds,
  };
}

const trying = {
  summary: 'Try an action on a record or a test',
  description: 'Reports what the runs would do, without sending or writing anything.',
  params: namedPath,
  body: trialBody,
  response: { 200: trialDocument, ...errorAnswers },
};

const tryAction =
  ({ actionWork }: Needs): Handler<typeof trying> =>
  async ({ params: { fleet_id, name }, body: { record, test, draft }, principal }) => {
    const tried = draft && actionDraftOf(draft, await running(actionWork, fleet_id, name));
    if ((record === undefined) === (test === undefined)) {
      throw new ApiError('invalid_body', { msg: 'The body has either a record or a test.' });
    }
    const input = record === undefined ? { test: testOf(test ?? {}) } : { record };
    return describeTrial(await actionWork.test(fleet_id, name, askerOf(principal), input, tried));
  };

const checking = {
  summary: 'Type-check the code of an action',
  description:
    'Checks TypeScript against the API of actions and the payload types of the schemas in `on`. Ends after 5 seconds of CPU time or with 256 MB. Fleets take turns, and so do the tokens of a fleet; a newer check of the same `name` takes the place of one that waits, which gets 409 `replaced`.',
  params: fleetPath,
  body: checkBody,
  response: { 200: checkDocument, ...errorAnswers },
};

const checkCode =
  ({ actionWork }: Needs): Handler<typeof checking> =>
  async ({ params: { fleet_id }, body, principal }) => ({
    items: [...(await actionWork.check(fleet_id, askerOf(principal), body))],
  });

/** `/fleets/{fleet_id}/actions`: the actions by name, their versions, and trying one. */
export function addActionRoutes(app: AdminApp, context: Needs): void {
  const route = routesOf(app);
  const action = '/fleets/:fleet_id/actions/:name';
  const bodyLimit = bodyLimitOf(context.config);
  route('GET', '/fleets/:fleet_id/actions', 'read', listing, listActions(context));
  route('POST', '/fleets/:fleet_id/actions::check', 'admin', checking, checkCode(context), {
    // It changes nothing, and is asked as somebody types.
    book: () => undefined,
    bodyLimit,
    hasOwnLimit: true,
  });
  route('PUT', action, 'admin', deployment, deployAction(context), { bodyLimit, hasOwnLimit: true });
  route('GET', action, 'read', showing, showAction(context));
  route('PATCH', action, 'admin', changing, changeAction(context));
  route('DELETE', action, 'admin', deletion, deleteAction(context));
  route('GET', `${action}/versions/:version`, 'read', showingVersion, showVersion(context));
  route('POST', `${action}/rollback`, 'admin', rollback, rollBack(context));
  route('POST', `${action}/test`, 'admin', trying, tryAction(context), { bodyLimit, hasOwnLimit: true });
}
