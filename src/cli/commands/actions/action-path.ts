import type { ActionTriggerDocument } from '../../../contract/action.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import type { FleetOptions } from '../../options.ts';

export function actionPath({ fleet: fleet_id }: FleetOptions, name: string) {
  return pathTo('/fleets/{fleet_id}/actions/{name}', { fleet_id, name });
}

/** Parses a trigger of the command line: NAME is a message, `datapoint:NAME` a datapoint, `reply:NAME` an answer to mail. */
export function triggerOf(text: string): ActionTriggerDocument {
  // The server refuses other kinds.
  const [kind, schema] = text.split(':', 2) as [ActionTriggerDocument['kind'], string?];
  return schema === undefined ? { kind: 'message', schema: text } : { kind, schema };
}
