import { pathTo } from '../../../contract/routes/path.ts';

export function pathOfAction(fleetId: string, name: string) {
  return pathTo('/fleets/{fleet_id}/actions/{name}', { fleet_id: fleetId, name });
}

/** Key of what is written of an action; with `#record`, of the record that it is tried on. */
export function actionDraftKey(fleetId: string, name: string): string {
  return `${fleetId}/action/${name}`;
}
