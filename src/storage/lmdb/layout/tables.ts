import type { Environment } from '../environment/environment.ts';
import type { Table } from '../environment/stored-tables.ts';

export const tableNames = [
  'devices',
  'tags',
  'names',
  'seen',
  'counts',
  'retiring',
  'activity',
  'mailboxes',
  'waiting',
  'mail',
  'fleetMail',
  'requeued',
  'expiry',
  'delayed',
  'due',
  'replaceable',
  'receipts',
  'replies',
  'dead',
  'queues',
  'idempotency',
  'sent',
  'broadcast',
  'log',
  'logIndex',
  'times',
] as const;

/** The tables of a shard; see keys.ts for their keys. */
export type Tables = Readonly<Record<(typeof tableNames)[number], Table>>;

export function openTables(environment: Environment): Tables {
  return Object.fromEntries(tableNames.map((name) => [name, environment.table(name)])) as Tables;
}
