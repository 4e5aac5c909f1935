import type { Log } from '../core/telemetry/log.ts';
import type { DisabledSchema, FleetSnapshot } from './fleet.ts';

/** Logs the stored schemas that a start finds too large: they are from before this limit, or a higher one. */
export function logDisabledAtStart(log: Log, snapshots: readonly FleetSnapshot[]): void {
  for (const { fleet, schemas } of snapshots) {
    for (const { disabled, ...schema } of schemas)
      if (disabled !== undefined) logDisabled(log, { ...schema, fleetId: fleet.fleetId, disabled });
  }
}

/** Logged by the thread that disabled it. */
export function logDisabled(log: Log, { fleetId, kind, name, disabled }: DisabledSchema): void {
  log.error(
    { fleet_id: fleetId, kind, schema: name, reason: disabled },
    'schema disabled; its bodies get 503 until it is put again',
  );
}
