import { pathOf } from '../admin-client.ts';
import type { ConnectionOptions } from '../connection.ts';

export interface FleetOptions extends ConnectionOptions {
  fleet: string;
}

/** `rest` is what comes after the action in the path. */
export function actionPath({ fleet }: FleetOptions, name: string, ...rest: string[]): string {
  return pathOf('fleets', fleet, 'actions', name, ...rest);
}
