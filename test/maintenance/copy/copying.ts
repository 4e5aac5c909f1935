import { expect } from 'vitest';
import { createDatabase } from '../../harness/postgres/postgres.ts';
import { fleetpost } from '../../harness/server/command.ts';

/** Count and digest of one kind of record, as `fleetpost copy --json` reports them. */
export interface CopiedKind {
  kind: string;
  records: number;
  digest: string;
}

export const emptyDatabases = (count: number): Promise<string[]> =>
  Promise.all(Array.from({ length: count }, () => createDatabase()));

/** `fleetpost` with these. */
export function copyArguments(from: readonly string[], to: readonly string[]): string[] {
  const flags = (name: string, places: readonly string[]): string[] =>
    places.flatMap((place) => [name, place]);
  return ['copy', ...flags('--from', from), ...flags('--to', to)];
}

/** A copy that comes to its end. */
export async function copy(from: readonly string[], to: readonly string[]): Promise<CopiedKind[]> {
  const { status, stdout, stderr } = await fleetpost([...copyArguments(from, to), '--json']);
  expect(status, stderr).toBe(0);
  return (JSON.parse(stdout) as { kinds: CopiedKind[] }).kinds;
}
