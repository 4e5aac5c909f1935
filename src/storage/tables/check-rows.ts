import { decodeRow, type TableLayout } from './collection.ts';
import type { Findings } from './findings.ts';
import type { KeyTuple } from './key-codec.ts';

/** A table of a stopped server. */
export interface StoppedTable {
  /** Reports and skips what is damaged. */
  entries(onDamage: (damage: Error) => void): Iterable<{ key: Buffer; value: Buffer }>;
}

/** A store of a stopped server, and where its findings go. */
export interface StoppedStore {
  /** Begins the findings. */
  part: string;
  tables: ReadonlyMap<string, StoppedTable>;
  findings: Pick<Findings, 'add'>;
  /** Called for every row. */
  onRecord(): void;
}

/** A row that decodes and is its key's. */
export interface CheckedRow<K, V> {
  key: K;
  value: V;
  /** Adds a finding about this row: `is of a fleet that does not exist`, say. */
  report(wrong: string): void;
}

/** Goes through the sound rows of a table; reports the others, what is damaged, and a missing table. */
export function* checkRows<K extends KeyTuple, V>(
  { part, tables, findings, onRecord }: StoppedStore,
  layout: TableLayout<K, V>,
): Generator<CheckedRow<K, V>> {
  const { name } = layout;
  const table = tables.get(name);
  if (table === undefined) findings.add(`${part}: there is no table ${name}`);
  const onDamage = (damage: Error): void => findings.add(`${part}, ${name}: ${damage.message}`);
  for (const row of table?.entries(onDamage) ?? []) {
    onRecord();
    const report = (wrong: string): void =>
      findings.add(`${part}, ${name}: ${printableKey(row.key)} ${wrong}`);
    let decoded: [K, V];
    try {
      decoded = decodeRow(layout, row);
    } catch {
      report('does not decode');
      continue;
    }
    yield { key: decoded[0], value: decoded[1], report };
  }
}

/** Checks a table that has nothing to be checked but its layout. Returns how many rows it has, sound or not. */
export function checkTable<K extends KeyTuple, V>(store: StoppedStore, layout: TableLayout<K, V>): number {
  let rows = 0;
  const onRecord = (): void => {
    rows += 1;
    store.onRecord();
  };
  for (const _ of checkRows({ ...store, onRecord }, layout));
  return rows;
}

/** Bounded, because a damaged key can be anything. */
function printableKey(key: Buffer): string {
  const text = key.toString('latin1');
  return `key ${/^[\w-]{1,300}$/.test(text) ? text : key.toString('hex', 0, 64)}`;
}
