import type { ApiError } from '../../core/errors.ts';
import { type DeviceKey, schemaNamePattern } from '../../core/identity.ts';
import type { Refusals, RefusedRequest } from '../../domain/devices/refusals.ts';
import { describeError } from '../server/note-refusal.ts';

type Kind = Pick<RefusedRequest, 'route' | 'name'>;

/** The route of a record's own. */
function routeOf(item: unknown): Kind | undefined {
  const { kind, schema } = (item ?? {}) as Record<string, unknown>;
  const name = typeof schema === 'string' && schemaNamePattern.test(schema) ? schema : undefined;
  if (kind === 'datapoint') return { route: 'POST /v1/datapoint/:schema_name', name };
  return kind === 'message' ? { route: 'POST /v1/msg/:schema_name', name } : undefined;
}

/**
 * Notes what became of a sync's records as if each had come by its own route, so that an operator is told the same; of one
 * whose kind is not known as the sync's. `errors` has one for each record, undefined for one that was accepted.
 */
export function noteRecords(
  refusals: Refusals,
  device: DeviceKey,
  records: readonly unknown[],
  errors: readonly (ApiError | undefined)[],
): void {
  const accepted = new Map<string, Kind>();
  const wasRefused = refusals.wasRefused(device);
  for (const [index, error] of errors.entries()) {
    if (error === undefined && !wasRefused) continue;
    const kind = routeOf(records[index]) ?? { route: 'POST /v1/sync', name: undefined };
    if (error === undefined) accepted.set(`${kind.route} ${kind.name}`, kind);
    else refusals.note(device, { ...kind, ...describeError(error) });
  }
  for (const kind of accepted.values()) refusals.noteAcceptedPart(device, kind);
}
