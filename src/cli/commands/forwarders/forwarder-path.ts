import { pathOf } from '../../admin-client.ts';
import type { ConnectionOptions } from '../../connection.ts';

export interface ForwarderFleetOptions extends ConnectionOptions {
  fleet: string;
}

/** What the commands read of one. */
export interface ForwarderAnswer {
  name: string;
  type: string;
  url?: string;
  servers?: string[];
  filter: { kinds?: string[]; schemas?: string[] };
  enabled: boolean;
  state: string;
  behind: number;
  delivered: number;
  dead_letters: number;
  last_error: { at: string; msg: string } | null;
}

/** `rest` is what comes after the forwarder in the path. */
export function forwarderUrl({ fleet }: ForwarderFleetOptions, name: string, ...rest: string[]): string {
  return pathOf('fleets', fleet, 'forwarders', name, ...rest);
}
