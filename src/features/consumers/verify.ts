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

/** What each record must be, as tables.ts says; answers what is wrong with it. */
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

/** Walks everything that is kept of consumers, of a server that is stopped. Answers how many operators have. */
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
    if (table === undefined) findings.add(`consumers: there is no table ${name}`);
    const onDamage = (damage: Error): void => findings.add(`consumers, ${name}: ${damage.message}`);
    for (const { key, value } of table?.entries(onDamage) ?? []) {
      onRecord();
      const id = idOf(name, key, value, checks[name]);
      const text = key.toString('hex', 0, 64);
      if (id === undefined) findings.add(`consumers, ${name}: key ${text} does not decode`);
      else if (name === 'consumers') {
        ids.add(id);
        const { fleetId, name } = readConsumerKey(key);
        // The place of a forwarder is one too.
        if (consumerNamePattern.test(name)) consumers += 1;
        if (!hasFleet(fleetId)) findings.add(`consumers: fleet ${fleetId} of one does not exist`);
      } else if (!ids.has(id)) findings.add(`consumers, ${name}: key ${text} is of no consumer`);
    }
  }
  return { consumers };
}

/** Of the consumer that a record is of; undefined for one that is not what it should be. */
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
