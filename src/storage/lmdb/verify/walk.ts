import { isDeviceKey } from '../../../core/identity.ts';
import type { Findings } from '../../tables/findings.ts';
import { Damage, type StoredTable } from '../environment/database-file.ts';

/** Walks one table: `check` returns what is wrong with a record, if anything. */
export type TableWalk = (table: string, check: (key: Buffer, value: Buffer) => string | undefined) => void;

export interface Walked {
  tables: ReadonlyMap<string, StoredTable>;
  findings: Pick<Findings, 'add'>;
  /** Called for every record visited. */
  onRecord(): void;
}

/** Walks tables of one environment, adding wrong records and damaged pages to the findings. */
export function tableWalkOf({ tables, findings, onRecord }: Walked): TableWalk {
  return (name, check) => {
    const table = tables.get(name);
    if (table === undefined) {
      findings.add(`there is no table ${name}`);
      return;
    }
    for (const { key, value } of table.entries((damage) => findings.add(`${name}: ${damage.message}`))) {
      onRecord();
      const wrong = attempt(() => check(key, value));
      if (wrong !== undefined) findings.add(`${name}, ${printable(key)}: ${wrong}`);
    }
  };
}

/** A record that is too short or overwritten makes its reader throw. */
function attempt(check: () => string | undefined): string | undefined {
  try {
    return check();
  } catch (error) {
    if (error instanceof Damage) return error.message;
    return `the record does not decode (${(error as Error).name})`;
  }
}

/** Sound keys begin with ids, damaged ones with anything. */
function printable(key: Buffer): string {
  const text = key.toString('latin1');
  return isDeviceKey(text) ? text : `key ${key.subarray(0, 64).toString('hex')}`;
}
