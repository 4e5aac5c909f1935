import { ofNoFleet } from '../../declarations/verify.ts';
import { checkRows, type StoppedStore } from '../../storage/tables/check-rows.ts';
import { cursorDoneTable, cursorTable } from '../records/cursor.ts';
import { consumerNamePattern } from './consumer-service.ts';
import { consumerTable } from './consumer-tables.ts';

/** Checks all tables of consumers on a stopped server. Returns the number of operators' consumers. */
export function verifyConsumers(store: StoppedStore, hasFleet: (fleetId: string) => boolean): number {
  const ids = new Set<string>();
  let consumers = 0;
  for (const { key, value, report } of checkRows(store, consumerTable)) {
    const [fleetId, name] = key;
    ids.add(value.id.toString('hex'));
    // Forwarders have consumers too.
    if (consumerNamePattern.test(name)) consumers += 1;
    if (!hasFleet(fleetId)) report(ofNoFleet);
  }
  for (const table of [cursorTable, cursorDoneTable]) {
    for (const { key, report } of checkRows(
      store,
      table as Pick<typeof cursorTable, 'name' | 'key' | 'value'>,
    )) {
      if (!ids.has(key[0].toString('hex'))) report('belongs to no consumer');
    }
  }
  return consumers;
}
