import { pathTo } from '../../../contract/routes/path.ts';
import { call } from '../../server/client.ts';
import { type Resource, useResource } from '../../server/resource.ts';

/** An action, forwarder or consumer that names a schema; `what` is also the command that shows it. */
export interface SchemaUse {
  what: 'action' | 'forwarder' | 'consumer';
  name: string;
}

/** Uses of each schema of a fleet, by `kind:name`. */
export type SchemaUses = ReadonlyMap<string, readonly SchemaUse[]>;

/** Reads what uses the schemas of a fleet. What reads records of all schemas names none. */
export function useSchemaUses(fleetId: string): Resource<SchemaUses> {
  return useResource(`${fleetId} uses`, async (signal) => {
    const [actions, forwarders, consumers] = await Promise.all([
      call('GET', pathTo('/fleets/{fleet_id}/actions', { fleet_id: fleetId }), { signal }),
      call('GET', pathTo('/fleets/{fleet_id}/forwarders', { fleet_id: fleetId }), { signal }),
      call('GET', pathTo('/fleets/{fleet_id}/consumers', { fleet_id: fleetId }), { signal }),
    ]);
    const uses = new Map<string, SchemaUse[]>();
    const add = (key: string, use: SchemaUse): void => {
      uses.set(key, [...(uses.get(key) ?? []), use]);
    };
    for (const { name, on } of actions.items)
      for (const { kind, schema } of on) add(`${kind}:${schema}`, { what: 'action', name });
    const addReader = (
      use: SchemaUse,
      kinds: readonly string[] | undefined,
      schemas: readonly string[] | undefined,
    ): void => {
      const read =
        kinds === undefined || kinds.length === 0 ? ['datapoint', 'message', 'receipt', 'reply'] : kinds;
      // A receipt is of a mail.
      for (const schema of new Set(schemas))
        for (const kind of read) add(`${kind === 'receipt' ? 'mail' : kind}:${schema}`, use);
    };
    for (const { name, filter } of forwarders.items)
      addReader({ what: 'forwarder', name }, filter.kinds, filter.schemas);
    for (const { name, kinds, schemas } of consumers.items)
      addReader({ what: 'consumer', name }, kinds, schemas);
    return uses;
  });
}
