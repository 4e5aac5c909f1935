import { OperatorError } from '../core/errors.ts';
import { fleetIdLength } from '../core/identity.ts';

/**
 * Refuses a damaged record of a kind of declarations whose key is fleet, or fleet and name: without it the server
 * would do as if it had never been declared. @throws OperatorError
 */
export function refuseDamaged(kind: string): (key: Buffer) => never {
  return (key) => {
    const text = key.toString('latin1');
    const fleet = `fleet ${JSON.stringify(text.slice(0, fleetIdLength))}`;
    const name = text.slice(fleetIdLength);
    const which = name === '' ? fleet : `${kind} ${JSON.stringify(name)} of ${fleet}`;
    throw new OperatorError(
      `The record of ${which} in the data folder is damaged. Restore the folder from a backup.`,
    );
  };
}
