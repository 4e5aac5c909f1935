import type { Path } from '../../../contract/routes/path.ts';
import { OperatorError } from '../../../core/errors.ts';
import { ask, canAsk } from '../../confirmation.ts';
import { type ConnectionOptions, connect } from '../../connection.ts';
import { print, printable } from '../../output.ts';

export interface FleetDeleteOptions extends ConnectionOptions {
  confirm?: string;
}

/** `fleet delete`: confirmed by the name of the fleet, which an id that was mistyped does not have. */
export async function deleteFleet(
  path: Path<'/fleets/{fleet_id}'>,
  options: FleetDeleteOptions,
): Promise<void> {
  const client = connect(options);
  const { fleet_id: fleetId, name } = await client.request('GET', path);
  const wanted = name || fleetId;
  if (options.confirm === undefined && !canAsk()) {
    throw new OperatorError(
      `This would delete the fleet ${fleetId} with all that is in it: confirm it with --confirm NAME, the name of the fleet, or its id if it has no name.`,
    );
  }
  const question = `This deletes the fleet ${printable(wanted)} with its devices, their mail and all that is declared in it, for good.\nType ${printable(wanted)} to confirm: `;
  const confirmed = options.confirm ?? (await ask(question));
  if (confirmed !== wanted) {
    throw new OperatorError(`That is not the ${name ? 'name' : 'id'} of the fleet; nothing was deleted.`);
  }
  const fleet = await client.request('DELETE', path, { query: { name: confirmed } });
  const text = `The fleet ${fleetId} is being deleted: "fleet show ${fleetId}" finds it until all of it is gone.`;
  print(options, fleet, text);
}
