import { type Static, Type } from 'typebox';
import type { AdminApp, AdminContext, Handler } from '../../admin-api/request/context.ts';
import { errorAnswers, fleetPath, listOf } from '../../admin-api/request/documents.ts';
import { ApiError } from '../../core/errors.ts';
import { schemaNamePattern } from '../../core/identity.ts';
import type { ActionConfig } from './config.ts';
import type { ActionTest, ActionVersion } from './declaration/action.ts';
import { actionTestsMax, sourceBytesMax } from './declaration/action-draft.ts';
import {
  actionChange,
  actionDocument,
  actionDraftOf,
  actionParameters,
  actionPutAnswer,
  describeAction,
  describeVersion,
  draftBody,
  newVersion,
  testRecord,
  versionDocument,
} from './documents.ts';
import { describeTrial, trialDocument } from './run-routes.ts';
import type { ActionService } from './service.ts';

const versionPath = Type.Interface([actionParameters], { version: Type.Integer({ minimum: 1 }) });

/** Room for a source with every character escaped, and for a body for each test, its mails and the filter. */
function bodyLimitOf(config: ActionConfig): number {
  return 2 * sourceBytesMax + config.schemaBytesMax + 2 * actionTestsMax * config.bodyBytesMax;
}

/** The current version, to take absent fields from; undefined where there is no such action yet. */
async function running(
  actions: ActionService,
  fleetId: string,
  name: string,
): Promise<ActionVersion | undefined> {
  try {
    return (await actions.get(fleetId, name)).current;
  } catch (error) {
    if (error instanceof ApiError && error.code === 'action_not_found') return undefined;
    throw error;
  }
}

/** Omits absent fields, as a field that is present is a change. */
function changeOf({ enabled, runs_per_second_max: rate }: Static<typeof actionChange>): {
  enabled?: boolean;
  runsPerSecondMax?: number | null;
} {
  return {
    ...(enabled !== undefined && { enabled }),
    ...(rate !== undefined && { runsPerSecondMax: rate }),
  };
}

const listing = {
  summary: 'List actions',
  params: fleetPath,
  response: { 200: listOf(actionDocument), ...errorAnswers },
};

const listActions =
  ({ config, actions }: AdminContext): Handler<typeof listing> =>
  async ({ params }) => {
    const all = await actions.list(params.fleet_id);
    return { items: all.map((status) => describeAction(status, config)), next: null };
  };

const deployment = {
  summary: 'Deploy a version of an action',
  description: 'Deploys a new version once its tests pass.',
  params: actionParameters,
  body: newVersion,
  response: { 200: actionPutAnswer, 201: actionPutAnswer, ...errorAnswers },
};

const deployAction =
  ({ config, actions }: AdminContext): Handler<typeof deployment> =>
  async ({ params: { fleet_id, name }, body }, reply) => {
    if (!schemaNamePattern.test(name)) {
      throw new ApiError('bad_request', { msg: 'An action name is 1 to 255 letters, digits, _ and -.' });
    }
    const { status, isNew, tests } = await actions.put(
      fleet_id,
      name,
      actionDraftOf(body, await running(actions, fleet_id, name)),
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
  params: actionParameters,
  response: { 200: actionDocument, ...errorAnswers },
};

const showAction =
  ({ config, actions }: AdminContext): Handler<typeof showing> =>
  async ({ params: { fleet_id, name } }) =>
    describeAction(await actions.get(fleet_id, name), config);

const changing = {
  summary: 'Enable, disable or pace an action',
  description: 'A disabled action skips records stored meanwhile.',
  params: actionParameters,
  body: actionChange,
  response: { 200: actionDocument, ...errorAnswers },
};

const changeAction =
  ({ config, actions }: AdminContext): Handler<typeof changing> =>
  async ({ params: { fleet_id, name }, body }) =>
    describeAction(await actions.change(fleet_id, name, changeOf(body)), config);

const deletion = {
  summary: 'Delete an action',
  params: actionParameters,
  response: { 204: Type.Null(), ...errorAnswers },
};

const deleteAction =
  ({ actions }: AdminContext): Handler<typeof deletion> =>
  async ({ params: { fleet_id, name } }, reply) => {
    await actions.delete(fleet_id, name);
    return reply.code(204).send(null);
  };

const showingVersion = {
  summary: 'Show a version of an action',
  params: versionPath,
  response: { 200: versionDocument, ...errorAnswers },
};

const showVersion =
  ({ actions }: AdminContext): Handler<typeof showingVersion> =>
  async ({ params: { fleet_id, name, version } }) =>
    describeVersion(await actions.version(fleet_id, name, version));

const rollback = {
  summary: 'Roll an action back to another version',
  description: 'Makes a retained version the current one, under its own number.',
  params: actionParameters,
  body: Type.Object({ version: Type.Integer({ minimum: 1 }) }, { additionalProperties: false }),
  response: { 200: actionDocument, ...errorAnswers },
};

const rollBack =
  ({ config, actions }: AdminContext): Handler<typeof rollback> =>
  async ({ params: { fleet_id, name }, body }) =>
    describeAction(await actions.rollback(fleet_id, name, body.version), config);

const trying = {
  summary: 'Try an action on one record',
  description: 'Reports what a run would do, without sending or writing anything.',
  params: actionParameters,
  body: Type.Object({ record: testRecord, draft: Type.Optional(draftBody) }, { additionalProperties: false }),
  response: { 200: trialDocument, ...errorAnswers },
};

const tryAction =
  ({ actions }: AdminContext): Handler<typeof trying> =>
  async ({ params: { fleet_id, name }, body: { record, draft } }) => {
    const tried = draft && actionDraftOf(draft, await running(actions, fleet_id, name));
    return describeTrial(await actions.test(fleet_id, name, record as ActionTest['record'], tried));
  };

/** `/fleets/{fleet_id}/actions`: the actions by name, their versions, and trying one. */
export function addActionRoutes(app: AdminApp, context: AdminContext): void {
  const bodyLimit = bodyLimitOf(context.config);
  app.get('/fleets/:fleet_id/actions', { config: { scope: 'read' }, schema: listing }, listActions(context));
  app.put(
    '/fleets/:fleet_id/actions/:name',
    { config: { scope: 'admin' }, bodyLimit, schema: deployment },
    deployAction(context),
  );
  app.get(
    '/fleets/:fleet_id/actions/:name',
    { config: { scope: 'read' }, schema: showing },
    showAction(context),
  );
  app.patch(
    '/fleets/:fleet_id/actions/:name',
    { config: { scope: 'admin' }, schema: changing },
    changeAction(context),
  );
  app.delete(
    '/fleets/:fleet_id/actions/:name',
    { config: { scope: 'admin' }, schema: deletion },
    deleteAction(context),
  );
  app.get(
    '/fleets/:fleet_id/actions/:name/versions/:version',
    { config: { scope: 'read' }, schema: showingVersion },
    showVersion(context),
  );
  app.post(
    '/fleets/:fleet_id/actions/:name/rollback',
    { config: { scope: 'admin' }, schema: rollback },
    rollBack(context),
  );
  app.post(
    '/fleets/:fleet_id/actions/:name/test',
    { config: { scope: 'admin' }, bodyLimit, schema: trying },
    tryAction(context),
  );
}
