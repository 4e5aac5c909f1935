import type { Command } from 'commander';
import type { Path } from '../../contract/routes/path.ts';
import { connect } from '../connection.ts';
import { type FleetOptions, fleetCommand } from '../options.ts';
import { print } from '../output.ts';

/** A reader of records that can be paused, as its commands need it. */
export interface PausableReader {
  /** `a forwarder`, and what holds while it is paused. */
  of: string;
  meanwhile: string;
  path(
    options: FleetOptions,
    name: string,
  ): Path<'/fleets/{fleet_id}/consumers/{name}' | '/fleets/{fleet_id}/forwarders/{name}'>;
}

/** Adds `pause|resume`. */
export function addPauseCommands(group: Command, { of, meanwhile, path }: PausableReader): void {
  for (const enabled of [false, true]) {
    const description = enabled ? `resume ${of}` : `pause ${of}; ${meanwhile}`;
    fleetCommand(group, `${enabled ? 'resume' : 'pause'} <name>`, description).action(
      async (name: string, options: FleetOptions) => {
        const reader = await connect(options).request('PATCH', path(options, name), { json: { enabled } });
        print(options, reader, `${reader.name} is ${reader.enabled ? 'resumed' : 'paused'}.`);
      },
    );
  }
}
