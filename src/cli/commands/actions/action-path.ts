import { pathOf } from '../../admin-client.ts';
import type { ConnectionOptions } from '../../connection.ts';

export interface ActionFleetOptions extends ConnectionOptions {
  fleet: string;
}

/** `rest`: the path below the action. */
export function actionUrl({ fleet }: ActionFleetOptions, name: string, ...rest: string[]): string {
  return pathOf('fleets', fleet, 'actions', name, ...rest);
}

export interface TriggerAnswer {
  kind: string;
  schema: string;
}

/** Parses a trigger of the command line: NAME is a message, `datapoint:NAME` a datapoint. */
export function triggerOf(text: string): TriggerAnswer {
  const [kind = '', schema] = text.split(':', 2);
  return schema === undefined ? { kind: 'message', schema: text } : { kind, schema };
}

export function triggerText({ kind, schema }: TriggerAnswer): string {
  return kind === 'message' ? schema : `${kind}:${schema}`;
}
