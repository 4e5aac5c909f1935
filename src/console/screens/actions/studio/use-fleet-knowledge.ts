import type { RecordDocument } from '../../../../contract/record.ts';
import { pathTo } from '../../../../contract/routes/path.ts';
import type { SchemaDocument } from '../../../../contract/schema.ts';
import type { KnownOfFleet } from '../../../editor/completion.ts';
import { call } from '../../../server/client.ts';
import { type Resource, useDocument, useResource } from '../../../server/resource.ts';
import { triggerIn } from '../action-text.ts';

/** Parts of a fleet that an action may use. */
export interface FleetKnowledge {
  /** Undefined while they are read. */
  schemas: readonly SchemaDocument[] | undefined;
  known: KnownOfFleet;
  /** Newest records of the schemas that the action runs for. */
  latest: Resource<{ items: RecordDocument[] }>;
}

const latestRecords = 20;

/** Reads what is completed and tried on: schemas, and the newest records of the triggers. */
export function useFleetKnowledge(fleetId: string, on: readonly string[]): FleetKnowledge {
  const path = `/fleets/${fleetId}`;
  const schemas = useDocument(pathTo('/fleets/{fleet_id}/schemas', { fleet_id: fleetId }));
  const triggers = on.map(triggerIn);
  const key = on.join();
  const payloads = useResource(on.length === 0 ? undefined : `schemas ${path} ${key}`, (signal) =>
    Promise.all(
      triggers.map(({ kind, schema: name }) =>
        // A schema that is gone completes nothing.
        call('GET', pathTo('/fleets/{fleet_id}/schemas/{kind}/{name}', { fleet_id: fleetId, kind, name }), {
          signal,
        }).catch(() => ({})),
      ),
    ),
  );
  const latest = useResource(on.length === 0 ? undefined : `latest ${path} ${key}`, async (signal) => {
    const { items } = await call('GET', pathTo('/fleets/{fleet_id}/records:latest', { fleet_id: fleetId }), {
      query: {
        kind: [...new Set(triggers.map(({ kind }) => kind))],
        schema: [...new Set(triggers.map(({ schema }) => schema))],
        limit: latestRecords,
      },
      signal,
    });
    // A message and a datapoint may have schemas of one name.
    return { items: items.filter(({ kind, schema }) => on.includes(`${kind}:${schema}`)) };
  });
  const mailNames = (schemas.value?.items ?? [])
    .filter(({ kind }) => kind === 'mail')
    .map(({ name }) => name);
  return {
    schemas: schemas.value?.items,
    known: { payloads: payloads.value ?? [], mailNames },
    latest,
  };
}
