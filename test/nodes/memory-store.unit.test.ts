import { expect, it } from 'vitest';
import { MemoryStore } from '../../src/nodes/memory-store.ts';
import type { Session } from '../../src/storage/postgres/connection/database.ts';
import type { StoredChange } from '../../src/storage/tables/table-store.ts';

class OpenStore extends MemoryStore {
  override load(session: Session, store: string): Promise<StoredChange[]> {
    return super.load(session, store);
  }

  override take(changes: readonly StoredChange[]): void {
    super.take(changes);
  }
}

const row = (value: string) => ({ name: 'fleets', key: Buffer.from('FLEET001'), value: Buffer.from(value) });

it('a change that is taken as a load ends is kept, in whatever turn that comes', async () => {
  for (let turns = 0; turns < 20; turns += 1) {
    const store = new OpenStore(['fleets']);
    let changing: Promise<void> | undefined;
    const change = async (): Promise<void> => {
      for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
      store.take([row('new')]);
    };
    const query = async () => {
      changing = change();
      return [row('old')];
    };
    await store.load({ query } as unknown as Session, 'registry');
    await changing;
    expect(store.rows('fleets').get(Buffer.from('FLEET001'))?.toString(), `${turns} turns`).toBe('new');
  }
});
