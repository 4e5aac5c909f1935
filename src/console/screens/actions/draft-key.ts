/** Key of what is written of an action; with `#record`, of the record that it is tried on. */
export function actionDraftKey(fleetId: string, name: string): string {
  return `${fleetId}/action/${name}`;
}
