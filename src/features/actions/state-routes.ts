import { Type } from 'typebox';
import type { AdminApp, Handler } from '../../admin-api/request/context.ts';
import { routesOf } from '../../admin-api/request/route.ts';
import {
  deletedKeysDocument,
  type StateEntryDocument,
  stateEntryDocument,
  stateKeyQuery,
  stateQuery,
  stateValueBody,
} from '../../contract/action-run.ts';
import { errorAnswers, listOf, namedPath, pageLimit } from '../../contract/document.ts';
import type { ActionWork, StateEntry } from './action-work.ts';

interface Needs {
  actionWork: ActionWork;
}

function describeEntry({ key, value }: StateEntry): StateEntryDocument {
  return { key, value: JSON.parse(value) as unknown };
}

const listing = {
  summary: 'List the state of an action',
  params: namedPath,
  querystring: Type.Object({ ...stateQuery, limit: pageLimit }),
  response: { 200: listOf(stateEntryDocument), ...errorAnswers },
};

const listState =
  ({ actionWork }: Needs): Handler<typeof listing> =>
  async ({ params: { fleet_id, name }, query: { after, limit } }) => {
    const wanted = { limit, ...(after !== undefined && { after }) };
    const { items, next } = await actionWork.listState(fleet_id, name, wanted);
    return { items: items.map(describeEntry), next };
  };

const showing = {
  summary: 'Show one key of the state of an action',
  params: namedPath,
  querystring: stateKeyQuery,
  response: { 200: stateEntryDocument, ...errorAnswers },
};

const showKey =
  ({ actionWork }: Needs): Handler<typeof showing> =>
  async ({ params: { fleet_id, name }, query: { key } }) =>
    describeEntry(await actionWork.getState(fleet_id, name, key));

const setting = {
  summary: 'Set one key of the state of an action',
  description: 'A run that has read the key before, and has not ended, runs again.',
  params: namedPath,
  querystring: stateKeyQuery,
  body: stateValueBody,
  response: { 200: stateEntryDocument, ...errorAnswers },
};

const setKey =
  ({ actionWork }: Needs): Handler<typeof setting> =>
  async ({ params: { fleet_id, name }, query: { key }, body: { value }, audited }) => {
    audited.about = { key };
    return describeEntry(await actionWork.setState(fleet_id, name, key, value));
  };

const deletingKey = {
  summary: 'Delete one key of the state of an action',
  params: namedPath,
  querystring: stateKeyQuery,
  response: { 200: deletedKeysDocument, ...errorAnswers },
};

const deleteKey =
  ({ actionWork }: Needs): Handler<typeof deletingKey> =>
  async ({ params: { fleet_id, name }, query: { key }, audited }) => {
    audited.about = { key };
    return { deleted: await actionWork.deleteState(fleet_id, name, key) };
  };

const deletingAll = {
  summary: 'Delete the whole state of an action',
  params: namedPath,
  response: { 200: deletedKeysDocument, ...errorAnswers },
};

const deleteAll =
  ({ actionWork }: Needs): Handler<typeof deletingAll> =>
  async ({ params: { fleet_id, name }, audited }) => {
    const deleted = await actionWork.deleteState(fleet_id, name);
    audited.about = { deleted };
    return { deleted };
  };

/** `/fleets/{fleet_id}/actions/{name}/state`. */
export function addActionStateRoutes(app: AdminApp, context: Needs): void {
  const route = routesOf(app);
  const path = '/fleets/:fleet_id/actions/:name/state';
  route('GET', path, 'read', listing, listState(context));
  route('DELETE', path, 'admin', deletingAll, deleteAll(context));
  const ofKey = `${path}/value`;
  route('GET', ofKey, 'read', showing, showKey(context));
  route('PUT', ofKey, 'admin', setting, setKey(context));
  route('DELETE', ofKey, 'admin', deletingKey, deleteKey(context));
}
