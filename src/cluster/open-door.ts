import { AdminDoor } from '../admin/door.ts';
import type { Config } from '../core/config.ts';
import { OperatorError } from '../core/errors.ts';
import { parseHostPort } from '../core/host-port.ts';
import type { Readiness } from './readiness.ts';

/** Before a move, which may take minutes: a port that is taken is told at once, and health is answered meanwhile. */
export async function openDoor(config: Config, readiness: Readiness): Promise<AdminDoor> {
  try {
    return await AdminDoor.open(parseHostPort(config.admin), () => readiness.reasons());
  } catch {
    throw new OperatorError(
      `${config.admin} cannot be listened on for the admin API: is another server using it?`,
    );
  }
}
