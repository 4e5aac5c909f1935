import type { Handlers } from '../../admin-api/request/routes.ts';
import type { actionStateRoutes, StateEntryDocument } from '../../contract/action-run.ts';
import type { ActionWork, StateEntry } from './action-work.ts';

function describeEntry({ key, value }: StateEntry): StateEntryDocument {
  return { key, value: JSON.parse(value) as unknown };
}

/** Handles `/fleets/{fleet_id}/actions/{name}/state`. */
export function actionStateHandlers({
  actionWork,
}: {
  actionWork: ActionWork;
}): Handlers<typeof actionStateRoutes> {
  return {
    'GET /fleets/{fleet_id}/actions/{name}/state': async ({
      params: { fleet_id, name },
      query: { after, limit },
      turn,
    }) => {
      const wanted = { limit, ...(after !== undefined && { after }) };
      const page = await actionWork.listState(fleet_id, name, wanted);
      const items: StateEntryDocument[] = [];
      for (const entry of page.items) {
        // A page may have 4 MB of them, and parsing takes up to a tenth of a microsecond a byte.
        await turn();
        items.push(describeEntry(entry));
      }
      return { items, next: page.next };
    },
    'DELETE /fleets/{fleet_id}/actions/{name}/state': async ({ params: { fleet_id, name }, audited }) => {
      const deleted = await actionWork.deleteState(fleet_id, name);
      audited.about = { deleted };
      return { deleted };
    },
    'GET /fleets/{fleet_id}/actions/{name}/state/value': async ({
      params: { fleet_id, name },
      query: { key },
    }) => describeEntry(await actionWork.getState(fleet_id, name, key)),
    'PUT /fleets/{fleet_id}/actions/{name}/state/value': async ({
      params: { fleet_id, name },
      query: { key },
      body: { value },
      audited,
    }) => {
      audited.about = { key };
      return describeEntry(await actionWork.setState(fleet_id, name, key, value));
    },
    'DELETE /fleets/{fleet_id}/actions/{name}/state/value': async ({
      params: { fleet_id, name },
      query: { key },
      audited,
    }) => {
      audited.about = { key };
      return { deleted: await actionWork.deleteState(fleet_id, name, key) };
    },
  };
}
