import type { HandlerOf, Handlers } from '../../admin-api/request/routes.ts';
import type { Principal } from '../../admin-api/request/scope.ts';
import { timeTextOf } from '../../admin-api/request/times.ts';
import type { Turn } from '../../admin-api/request/turn.ts';
import type {
  ActionChangeBody,
  ActionDocument,
  ActionDraftBody,
  ActionTestDocument,
  ActionVersionDocument,
  actionRoutes,
} from '../../contract/action.ts';
import type { TrialDocument } from '../../contract/action-run.ts';
import { testBytesPerActionMax } from '../../core/bounds.ts';
import { ApiError } from '../../core/errors.ts';
import { schemaNamePattern } from '../../core/identity.ts';
import type { ActionDeclarations } from './action-declarations.ts';
import type { ActionWork, RunTrial, ShownAction } from './action-work.ts';
import type { ActionConfig } from './config.ts';
import type { ActionDraft, ActionFilter, ActionTest, ActionVersion } from './declaration/action.ts';
import { sourceBytesMax } from './declaration/action-draft.ts';
import type { Asker } from './queue/schedule.ts';

interface Parts {
  config: ActionConfig;
  actions: ActionDeclarations;
  actionWork: ActionWork;
}

type Routes = typeof actionRoutes;

/** Room for a source and tests with every character escaped, and for the filter. */
export function actionBodyLimits(config: ActionConfig) {
  const source = 2 * sourceBytesMax;
  const bytes = source + config.schemaBytesMax + 2 * testBytesPerActionMax;
  return {
    'POST /fleets/{fleet_id}/actions:check': source,
    'PUT /fleets/{fleet_id}/actions/{name}': bytes,
    'POST /fleets/{fleet_id}/actions/{name}/test': bytes,
  };
}

/** The current version, to take absent fields from; undefined where there is no such action yet. */
async function running(
  { actions, actionWork }: Parts,
  fleetId: string,
  name: string,
): Promise<ActionVersion | undefined> {
  try {
    return actions.version(fleetId, name, (await actionWork.get(fleetId, name)).action.version);
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
    secondsBehind,
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
      by: one.by ?? null,
    })),
    language: current.language,
    on: [...current.on],
    filter: filterOf(current),
    runs_per_second_max: action.runsPerSecondMax ?? config.settings.current.actionRunsPerSecondMax,
    held: held ?? null,
    in_hand: inHand,
    behind,
    seconds_behind: secondsBehind,
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

function filterOf({ filter }: Pick<ActionVersion, 'filter'>): ActionDocument['filter'] {
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

const deployAction =
  (parts: Parts): HandlerOf<Routes, 'PUT /fleets/{fleet_id}/actions/{name}'> =>
  async ({ params: { fleet_id, name }, body, principal }, reply) => {
    if (!schemaNamePattern.test(name)) {
      throw new ApiError('bad_request', { msg: 'An action name is 1 to 255 letters, digits, _ and -.' });
    }
    const { status, isNew, tests } = await parts.actions.put(
      fleet_id,
      name,
      actionDraftOf(body, await running(parts, fleet_id, name)),
      askerOf(principal),
      { force: body.force ?? false, ...changeOf(body) },
    );
    reply.code(isNew ? 201 : 200);
    return {
      ...describeAction(status, parts.config),
      tests: tests.map(({ test, reason }) => ({
        test,
        passed: reason === undefined,
        reason: reason ?? null,
      })),
    };
  };

/** Parsing what a trial shows may take a tenth of a second, so others have turns meanwhile. */
async function describeTrial(trial: RunTrial, turn: Turn): Promise<TrialDocument> {
  const mails: TrialDocument['mails'] = [];
  for (const mail of trial.mails) {
    await turn();
    mails.push({
      record: mail.record,
      device: mail.device,
      name: mail.name,
      payload: JSON.parse(mail.payload),
      ttl_seconds: mail.ttlSeconds ?? null,
      replace_key: mail.replaceKey ?? null,
    });
  }
  const state: TrialDocument['state'] = [];
  for (const { key, value } of trial.state) {
    await turn();
    state.push(
      value === null ? { key, removed: true } : { key, removed: false, value: JSON.parse(value) as unknown },
    );
  }
  return {
    error: trial.error ?? null,
    reason: trial.reason ?? null,
    records: trial.records,
    mails,
    state,
    log: [...trial.log],
    cpu_milliseconds: trial.cpuMilliseconds,
    wall_milliseconds: trial.wallMilliseconds,
  };
}

const tryAction =
  (parts: Parts): HandlerOf<Routes, 'POST /fleets/{fleet_id}/actions/{name}/test'> =>
  async ({ params: { fleet_id, name }, body: { record, test, draft }, principal, turn }) => {
    const tried = draft && actionDraftOf(draft, await running(parts, fleet_id, name));
    if ((record === undefined) === (test === undefined)) {
      throw new ApiError('invalid_body', { msg: 'The body has either a record or a test.' });
    }
    const input = record === undefined ? { test: testOf(test ?? {}) } : { record };
    const trial = await parts.actionWork.test(fleet_id, name, askerOf(principal), input, tried);
    return describeTrial(trial, turn);
  };

/** Handles `/fleets/{fleet_id}/actions`: the actions by name, their versions, and trying one. */
export function actionHandlers(parts: Parts): Handlers<Routes> {
  const { config, actions, actionWork } = parts;
  return {
    'GET /fleets/{fleet_id}/actions': async ({ params }) => {
      const all = await actionWork.list(params.fleet_id);
      return { items: all.map((status) => describeAction(status, config)), next: null };
    },
    'POST /fleets/{fleet_id}/actions:check': async ({ params: { fleet_id }, body, principal }) => ({
      items: [...(await actionWork.check(fleet_id, askerOf(principal), body))],
    }),
    'PUT /fleets/{fleet_id}/actions/{name}': deployAction(parts),
    'GET /fleets/{fleet_id}/actions/{name}': async ({ params: { fleet_id, name } }) =>
      describeAction(await actionWork.get(fleet_id, name), config),
    'PATCH /fleets/{fleet_id}/actions/{name}': async ({ params: { fleet_id, name }, body }) =>
      describeAction(await actions.change(fleet_id, name, changeOf(body)), config),
    'DELETE /fleets/{fleet_id}/actions/{name}': async ({ params: { fleet_id, name } }, reply) => {
      await actions.delete(fleet_id, name);
      return reply.code(204).send(null);
    },
    'GET /fleets/{fleet_id}/actions/{name}/versions/{version}': async ({
      params: { fleet_id, name, version },
    }) => describeVersion(actions.version(fleet_id, name, version)),
    'POST /fleets/{fleet_id}/actions/{name}/rollback': async ({ params: { fleet_id, name }, body }) =>
      describeAction(await actions.rollback(fleet_id, name, body.version), config),
    'POST /fleets/{fleet_id}/actions/{name}/test': tryAction(parts),
  };
}
