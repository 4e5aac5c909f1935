import type { Log } from '../core/telemetry/log.ts';
import type { DisabledSchema } from './fleet.ts';

/** Logged by the thread that disabled it. */
export function logDisabled(log: Log, { fleetId, kind, name, disabled }: DisabledSchema): void {
  log.error(
    { fleet_id: fleetId, kind, schema: name, reason: disabled },
    'schema disabled; its bodies get 503 until it is put again',
  );
}
