import type { JournalName } from '../../storage/lmdb/environment/data-folder.ts';
import type { Table } from '../../storage/lmdb/environment/stored-tables.ts';
import { decodeDelayed } from '../../storage/lmdb/layout/delayed-record.ts';
import { countOlderMail } from '../../storage/lmdb/mail/mail-bytes.ts';

/** The change that a step makes to each record of one table, in each environment that has it. */
export interface TableChange {
  environment: 'shards' | 'registry' | JournalName;
  table: string;
  /** Further tables that `change` writes to. */
  targets?: readonly string[];
  /**
   * Called once for each record, whatever kills the upgrade. It may replace or remove that record, or put others into
   * `targets`; a new key belongs into another table, or it would be met again.
   */
  change(record: ChangedRecord): void;
}

export interface ChangedRecord {
  key: Buffer;
  value: Buffer;
  /** The table that is walked, or one of `targets`. */
  table(name: string): Table;
}

/** Changes of one format to the next, at most one for each table; later ones see the records of earlier ones. */
export type FormatStep = readonly TableChange[];

/** Steps by the format that each begins from: one for every format before `formatVersion`. */
export const formatSteps: ReadonlyMap<number, FormatStep> = new Map([
  [
    1,
    [
      {
        environment: 'shards',
        table: 'mail',
        targets: ['fleetMail'],
        change: ({ key, value, table }) => countOlderMail(table('fleetMail'), key, value),
      },
      {
        environment: 'shards',
        table: 'delayed',
        targets: ['fleetMail'],
        change: ({ key, value, table }) => countOlderMail(table('fleetMail'), key, decodeDelayed(value).mail),
      },
    ],
  ],
]);
