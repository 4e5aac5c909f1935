import type { Command } from 'commander';
import { connect } from '../connection.ts';
import { type FleetOptions, fleetCommand } from '../options.ts';
import { print } from '../output.ts';

/** A reader of records that can be paused, as its commands need it. */
export interface PausableReader {
  /** `a forwarder`, and what holds while it is paused. */
  of: string;
  meanwhile: string;
  url(options: FleetOptions, name: string): string;
}

/** Adds `pause|resume`. */
export function addPauseCommands(group: Command, { of, meanwhile, url }: PausableReader): void {
  for (const enabled of [false, true]) {
    const description = enabled ? `resume ${of}` : `pause ${of}; ${meanwhile}`;
    fleetCommand(group, `${enabled ? 'resume' : 'pause'} <name>`, description).action(
      async (name: string, options: FleetOptions) => {
        const reader = await connect(options).requestAs<{ name: string; enabled: boolean }>(
          'PATCH',
          url(options, name),
          { json: { enabled } },
        );
        print(options, reader, `${reader.name} is ${reader.enabled ? 'resumed' : 'paused'}.`);
      },
    );
  }
}
