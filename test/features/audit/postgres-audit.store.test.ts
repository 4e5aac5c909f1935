import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { AuditEntry, AuditQuery, BegunEntry } from '../../../src/domain/audit-log.ts';
import { PostgresAudit } from '../../../src/features/audit/postgres-audit.ts';
import type { RunningConfig } from '../../../src/server/configuration/config.ts';
import { Database } from '../../../src/storage/postgres/connection/database.ts';
import { migrate } from '../../../src/storage/postgres/schema/migrate.ts';
import { withTypeScript } from '../../harness/machine/typescript.ts';
import { createMigrated, Postgres } from '../../harness/postgres/postgres.ts';
import { configWith } from '../../harness/server/config.ts';
import { eventOf } from './audit-event.ts';

const auditingNode = new URL('auditing-node.ts', import.meta.url).pathname;
const ok = { status: 200, error: null };

describe('the audit log of several nodes', () => {
  let url: string;
  let config: RunningConfig;
  let databases: Database[];
  let nodes: [PostgresAudit, PostgresAudit];
  let lines: string[];

  const open = (at: string): void => {
    url = at;
    config = configWith();
    lines = [];
    const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
    databases = [0, 1].map(() => new Database({ url, connectionsMax: 3, timeoutMilliseconds: 10_000, log }));
    const [one, other] = databases as [Database, Database];
    nodes = [new PostgresAudit(one, config, log), new PostgresAudit(other, config, log)];
  };
  const close = async (): Promise<void> => {
    for (const node of nodes) await node.close();
    for (const database of databases) await database.close();
  };
  beforeEach(async () => open(await createMigrated()));
  afterEach(close);

  /** Both nodes on a server of their own, which the tests of other files do not miss when it ends. */
  async function moveToOwnServer(): Promise<Postgres> {
    await close();
    const postgres = await Postgres.start();
    onTestFinished(() => postgres[Symbol.asyncDispose]());
    open(await postgres.create());
    await migrate(databases[0] as Database);
    return postgres;
  }

  async function pages(limit = 100, query: AuditQuery = {}, node = nodes[0]): Promise<AuditEntry[]> {
    const entries: AuditEntry[] = [];
    for (let after: number | undefined; ; ) {
      const { items, next } = await node.page(query, after, limit);
      entries.push(...items);
      if (next === null) return entries;
      after = Number(next);
    }
  }
  async function exported(query: AuditQuery = {}): Promise<AuditEntry[]> {
    const entries: AuditEntry[] = [];
    for await (const some of nodes[1].all(query)) entries.push(...some);
    return entries;
  }

  it('a change has its entry when it begins and its outcome when it has ended, on every node', async () => {
    const begun = await nodes[0].begin('change', eventOf({ fleet_id: 'FLEET001' }));
    expect(await pages(10, {}, nodes[1])).toEqual([begun.entry]);
    expect(begun.entry).toMatchObject({ number: 1, book: 'change', status: null, error: null, omitted: 0 });
    expect(Math.abs(begun.entry.timeMs - Date.now())).toBeLessThan(60_000);
    await nodes[0].end(begun, { status: 201, error: null, about: { device_id: 'DEVICE0001' } });
    const ended = {
      ...begun.entry,
      status: 201,
      about: { fleet_id: 'FLEET001', device_id: 'DEVICE0001' },
    };
    expect(await pages(10, {}, nodes[1])).toEqual([ended]);
    expect(await exported()).toEqual([ended]);
    expect(ended.by.name).toBe('Auditor\u0000s \ud800 friend');
  });

  it('of two nodes at once each entry is there once, in the order in which each node began them', async () => {
    const changes = nodes.flatMap((node, of) =>
      Array.from({ length: 700 }, async (_, number) => {
        const begun = await node.begin(number % 3 === 0 ? 'traffic' : 'change', eventOf({ of, number }));
        await node.end(begun, { ...ok, about: { ended: number } });
        return begun.entry.number;
      }),
    );
    nodes[0].note(eventOf({ of: 0, number: 700 }, { method: 'SIGHUP' }), ok);
    const numbers = await Promise.all(changes);
    await nodes[0].close();
    const entries = await exported();
    expect(entries).toHaveLength(1_401);
    expect(new Set(numbers).size).toBe(1_400);
    expect(entries.map(({ number }) => number)).toEqual(
      entries.map(({ number }) => number).toSorted((one, other) => one - other),
    );
    for (const of of [0, 1]) {
      const ofNode = entries.filter(({ about }) => about.of === of).map(({ about }) => about.number);
      expect(ofNode).toEqual(Array.from({ length: of === 0 ? 701 : 700 }, (_, number) => number));
    }
    expect(
      entries.every(
        ({ status, about, method }) =>
          status === 200 && (method === 'SIGHUP' || about.ended === about.number),
      ),
    ).toBe(true);
    // Pages of any length, from either node, give the same backwards.
    expect(await pages(97)).toEqual(entries.toReversed());
    expect(await pages(1_000, {}, nodes[1])).toEqual(entries.toReversed());
    expect(lines).toEqual([]);
  });

  it('narrows to a fleet, a token and a time; a page looks at so many entries and says that there are more', async () => {
    for (let round = 0; round < 7; round += 1) {
      await Promise.all(
        Array.from({ length: 1_000 }, () => nodes[0].begin('traffic', eventOf({ fleet_id: 'FLEET001' }))),
      );
    }
    const bootstrap = { kind: 'bootstrap' as const, id: null, name: null };
    const first = await nodes[1].begin('change', eventOf({ fleet_id: 'FLEET002' }, { by: bootstrap }));
    for (let round = 0; round < 7; round += 1) {
      await Promise.all(
        Array.from({ length: 1_000 }, () => nodes[1].begin('traffic', eventOf({ fleet_id: 'FLEET001' }))),
      );
    }
    const query = { fleetId: 'FLEET002' };
    const page = await nodes[0].page(query, undefined, 10);
    expect(page).toEqual({ items: [], next: String(14_001 - 5_000 + 1) });
    expect(await pages(10, query)).toEqual([first.entry]);
    expect(await pages(10, { token: 'bootstrap' })).toEqual([first.entry]);
    expect(await exported({ ...query, fromMs: first.entry.timeMs, toMs: first.entry.timeMs + 1 })).toEqual([
      first.entry,
    ]);
    expect(await exported({ ...query, fromMs: first.entry.timeMs + 1 })).toEqual([]);
  });

  it('each book has its bound, whoever writes; what was trimmed does not come back with its outcome', async () => {
    config.settings.change({ auditEntriesMax: 100 });
    const early = await nodes[0].begin('change', eventOf({ early: 1 }));
    const refused = eventOf({}, { method: 'GET' });
    for (let round = 0; round < 30; round += 1) {
      await Promise.all(
        nodes.flatMap((node) =>
          Array.from({ length: 20 }, async () => {
            await node.end(await node.begin('change', eventOf({ round })), ok);
            if (round < 20) await node.begin('traffic', eventOf({ round }));
          }),
        ),
      );
      nodes[0].refused('-', refused, { status: 401, error: 'invalid_token' });
    }
    const counts = async (): Promise<number[]> => {
      const entries = await exported();
      return ['change', 'traffic', 'refused'].map((of) => entries.filter(({ book }) => book === of).length);
    };
    await expect.poll(counts).toEqual([100, 100, 30]);
    await nodes[0].end(early, ok);
    expect(await counts()).toEqual([100, 100, 30]);
    expect((await exported({})).some(({ about }) => about.early === 1)).toBe(false);
    // A lower bound holds with the next entry.
    config.settings.change({ auditEntriesMax: 20 });
    await nodes[1].begin('change', eventOf({}));
    await expect.poll(counts).toEqual([20, 100, 30]);
    expect(lines).toEqual([]);
  });

  it('no fleet pushes out what another did, while that has less: the oldest go of whoever has most', async () => {
    config.settings.change({ auditEntriesMax: 100 });
    const quiet = ['QUIET001', 'QUIET002'];
    for (const fleet_id of quiet) {
      for (let n = 0; n < 30; n += 1) await nodes[0].begin('change', eventOf({ fleet_id, n }));
    }
    await nodes[1].begin('change', eventOf({ of: 'all' }));
    for (let round = 0; round < 20; round += 1) {
      await Promise.all(
        nodes.flatMap((node) =>
          Array.from({ length: 20 }, (_, n) =>
            node.begin('change', eventOf({ fleet_id: 'LOUD0001', n: round * 20 + n })),
          ),
        ),
      );
    }
    const numbers = async (fleet: unknown): Promise<unknown[]> =>
      (await exported()).filter(({ about }) => about.fleet_id === fleet).map(({ about }) => about.n);
    await expect.poll(async () => (await exported()).length).toBe(100);
    for (const fleet of quiet) expect(await numbers(fleet)).toEqual(Array.from({ length: 30 }, (_, n) => n));
    expect(await numbers(undefined)).toHaveLength(1);
    const loud = await numbers('LOUD0001');
    expect(loud).toHaveLength(39);
    expect(Math.min(...(loud as number[]))).toBeGreaterThanOrEqual(360);
    expect(lines).toEqual([]);
  });

  it('of refused requests so many a minute have an entry on each node, and the next one counts the others', async () => {
    config.settings.change({ auditRefusalsPerMinuteMax: 5 });
    for (let n = 0; n < 20; n += 1) {
      for (const node of nodes) node.refused('-', eventOf({ n }), { status: 403, error: 'forbidden' });
    }
    await Promise.all(nodes.map((node) => node.close()));
    const entries = await exported();
    // Nobody has all five; and the minute may have turned in between.
    expect(entries.length).toBeGreaterThanOrEqual(6);
    expect(entries.length).toBeLessThanOrEqual(20);
    expect(
      entries.every(
        ({ book, status, error }) => book === 'refused' && status === 403 && error === 'forbidden',
      ),
    ).toBe(true);
  });

  it('without the database nothing can begin; outcomes wait for it, so many of them, and the others are counted', async () => {
    const postgres = await moveToOwnServer();
    const waitMax = 1_000;
    const begun = await Promise.all(
      Array.from({ length: waitMax + 50 }, (_, n) => nodes[0].begin('change', eventOf({ n }))),
    );
    await postgres.end();
    await expect(nodes[0].begin('change', eventOf({}))).rejects.toMatchObject({ code: 'unavailable' });
    const [first, ...others] = begun as [BegunEntry, ...BegunEntry[]];
    await nodes[0].end(first, ok);
    expect(nodes[0].lost).toBe(0);
    await Promise.all(others.map((one) => nodes[0].end(one, ok)));
    await expect.poll(() => nodes[0].lost).toBe(50);
    expect(lines.join()).toContain('audit entry lost');
    await postgres.begin();
    const ended = async (): Promise<number> => {
      const entries = await exported().catch(() => []);
      return entries.filter(({ status }) => status === 200).length;
    };
    await expect.poll(ended).toBe(waitMax);
    expect(nodes[0].lost).toBe(50);
    expect(await exported()).toHaveLength(begun.length);
  });

  it('what waits for the database when the node ends is tried once more, and is lost', async () => {
    const postgres = await moveToOwnServer();
    const begun = await nodes[0].begin('change', eventOf({ lost: 1 }));
    await postgres.end();
    await nodes[0].end(begun, ok);
    await nodes[0].close();
    expect(nodes[0].lost).toBe(1);
    expect(lines.join()).toContain('audit entry lost');
    await postgres.begin();
    await expect.poll(() => exported().catch(() => [])).toEqual([begun.entry]);
  });

  it('of a node that is killed all that was begun is there, and what has ended has its outcome', async () => {
    const child = spawn(process.execPath, [...withTypeScript, auditingNode, url], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const said: string[] = [];
    createInterface({ input: child.stdout }).on('line', (line) => said.push(line));
    const exited = new Promise((resolve) => child.once('close', resolve));
    try {
      await expect.poll(() => said.length).toBeGreaterThan(200);
    } finally {
      child.kill('SIGKILL');
    }
    await exited;
    const entries = new Map((await exported()).map((entry) => [entry.number, entry]));
    for (const line of said) {
      const [what, number] = line.split(' ');
      const entry = entries.get(Number(number));
      expect(entry, line).toBeDefined();
      if (what === 'ended') expect(entry).toMatchObject({ status: 200, about: { done: 1 } });
    }
    // At most one of each of its four lines is without an outcome, and nobody makes one up.
    const open = [...entries.values()].filter(({ status }) => status === null);
    expect(open.length).toBeLessThanOrEqual(4);
    const begun = await nodes[0].begin('change', eventOf({}));
    const later = new Map((await exported()).map((entry) => [entry.number, entry]));
    expect(later.get(begun.entry.number)).toMatchObject({ status: null });
    for (const { number } of open) {
      const entry = later.get(number);
      // The database may commit what it was sent before the kill: with the outcome that there was.
      if (entry?.status !== null) expect(entry).toMatchObject({ status: 200, about: { done: 1 } });
    }
  });
});
