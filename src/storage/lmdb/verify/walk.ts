import { isDeviceKey } from '../../../core/identity.ts';
import { Damage, type StoredTable } from '../environment/database-file.ts';
import type { Findings } from '../environment/findings.ts';

/** One table's walk: `check` answers what is wrong with a record, if anything is. */
export type TableWalk = (table: string, check: (key: Buffer, value: Buffer) => string | undefined) => void;

export interface Walked {
  tables: ReadonlyMap<string, StoredTable>;
  findings: Pick<Findings, 'add'>;
  /** Called for every record that was looked at. */
  onRecord(): void;
}

/** Walks tables of one environment, and adds what is wrong with a record, or with its page, to the findings. */
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

/** A record that is too short or of other bytes makes its reader throw. */
function attempt(check: () => string | undefined): string | undefined {
  try {
    return check();
  } catch (error) {
    if (error instanceof Damage) return error.message;
    return `the record does not decode (${(error as Error).name})`;
  }
}

/** Keys begin with ids where all is well, and with anything where it is not. */
function printable(key: Buffer): string {
  const text = key.toString('latin1');
  return isDeviceKey(text) ? text : `key ${key.subarray(0, 64).toString('hex')}`;
}
