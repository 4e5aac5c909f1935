import type { Log } from '../core/telemetry/log.ts';
import type { DisabledSchema } from './fleet.ts';

/** By the thread that found it out. */
export function logDisabled(log: Log, { fleetId, kind, name, disabled }: DisabledSchema): void {
  log.error(
    { fleet_id: fleetId, kind, schema: name, reason: disabled },
    'a schema is disabled: bodies for it are answered 503 until it is put again',
  );
}
