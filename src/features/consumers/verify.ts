import { fleetIdPattern } from '../../core/identity.ts';
import { isUuid } from '../../core/uuid.ts';
import { recordKinds } from '../../domain/records/record.ts';
import type { StoredTable } from '../../storage/lmdb/environment/database-file.ts';
import type { Findings } from '../../storage/lmdb/environment/findings.ts';
import {
  consumerShardKeyBytes,
  consumerTables,
  decodeConsumer,
  positionBytes,
  readConsumerKey,
  readPosition,
} from '../records/consumer-tables.ts';
import { consumerNamePattern } from './service.ts';

type TableName = (typeof consumerTables)[number];

/** Whether a row is as consumer-tables.ts states. */
const checks: Readonly<Record<TableName, (key: Buffer, value: Buffer) => boolean>> = {
  consumers: (key, value) => {
    const { fleetId, name } = readConsumerKey(key);
    const { id, createdAtMs, kinds, schemas } = decodeConsumer(value);
    const isSound =
      isUuid(id) && Number.isFinite(createdAtMs) && schemas.every((one) => typeof one === 'string');
    return (
      fleetIdPattern.test(fleetId) &&
      name !== '' &&
      isSound &&
      kinds.every((one) => recordKinds.includes(one))
    );
  },
  consumerPositions: (key, value) =>
    key.length === consumerShardKeyBytes && value.length === 2 * positionBytes,
  consumerDone: (key, value) =>
    key.length === consumerShardKeyBytes + positionBytes &&
    value.length === positionBytes &&
    readPosition(key, consumerShardKeyBytes) < readPosition(value),
};

/** Checks all tables of consumers on a stopped server. Returns the number of operators' consumers. */
export function verifyConsumers(
  tables: ReadonlyMap<string, StoredTable>,
  hasFleet: (fleetId: string) => boolean,
  findings: Findings,
  onRecord: () => void,
): { consumers: number } {
  const ids = new Set<string>();
  let consumers = 0;
  for (const name of consumerTables) {
    const table = tables.get(name);
    if (table === undefined) findings.add(`consumers: table ${name} is missing`);
    const onDamage = (damage: Error): void => findings.add(`consumers, ${name}: ${damage.message}`);
    for (const { key, value } of table?.entries(onDamage) ?? []) {
      onRecord();
      const id = idOf(name, key, value, checks[name]);
      const text = key.toString('hex', 0, 64);
      if (id === undefined) findings.add(`consumers, ${name}: key ${text} does not decode`);
      else if (name === 'consumers') {
        ids.add(id);
        const { fleetId, name } = readConsumerKey(key);
        // Forwarders have consumers too.
        if (consumerNamePattern.test(name)) consumers += 1;
        if (!hasFleet(fleetId)) findings.add(`consumers: fleet ${fleetId} does not exist`);
      } else if (!ids.has(id)) findings.add(`consumers, ${name}: key ${text} belongs to no consumer`);
    }
  }
  return { consumers };
}

/** Id of the consumer that a row belongs to; undefined for an invalid row. */
function idOf(
  name: TableName,
  key: Buffer,
  value: Buffer,
  check: (key: Buffer, value: Buffer) => boolean,
): string | undefined {
  try {
    if (!check(key, value)) return undefined;
    return name === 'consumers' ? decodeConsumer(value).id.toString('hex') : key.toString('hex', 0, 16);
  } catch {
    return undefined;
  }
}
