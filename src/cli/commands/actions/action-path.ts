import type { ActionTriggerDocument } from '../../../contract/action.ts';
import { pathOf } from '../../admin-client.ts';
import type { FleetOptions } from '../../options.ts';

/** `rest`: the path below the action. */
export function actionUrl({ fleet }: FleetOptions, name: string, ...rest: string[]): string {
  return pathOf('fleets', fleet, 'actions', name, ...rest);
}

/** Parses a trigger of the command line: NAME is a message, `datapoint:NAME` a datapoint. */
export function triggerOf(text: string): { kind: string; schema: string } {
  const [kind = '', schema] = text.split(':', 2);
  return schema === undefined ? { kind: 'message', schema: text } : { kind, schema };
}

export function triggerText({ kind, schema }: ActionTriggerDocument): string {
  return kind === 'message' ? schema : `${kind}:${schema}`;
}
