import { afterAll, afterEach, beforeEach, expect, it, vi } from 'vitest';
import { sessionToken } from '../../src/core/identity.ts';
import { isExpired, Tokens, tokenTable } from '../../src/declarations/tokens.ts';
import { verifyRegistry } from '../../src/declarations/verify.ts';
import { registryTables } from '../../src/maintenance/environments.ts';
import { DatabaseFile } from '../../src/storage/lmdb/environment/database-file.ts';
import { Collection } from '../../src/storage/tables/collection.ts';
import { Findings } from '../../src/storage/tables/findings.ts';
import { temporaryFolder } from '../harness/machine/temporary-folder.ts';
import { openEnvironment } from '../harness/storage/environment.ts';

const settings = { current: { apiTokensMax: 2 } };
const ignore = (): void => {};
const hourMs = 3_600_000;
const folder = temporaryFolder();
const stored = openEnvironment(folder, registryTables);
const description = { name: 'operator', scopes: ['read'], fleetId: null } as const;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() });
});
afterEach(() => {
  vi.useRealTimers();
});
afterAll(() => stored.close());

/** Waits for the write of a renewal, which nobody is told of. */
async function settled(tokens: Tokens): Promise<void> {
  await tokens.close();
}

it('a session lives while it is used, over restarts too, and twelve hours at the most', async () => {
  const tokens = new Tokens(stored, settings, ignore);
  const { token, secret } = await tokens.createSession({ ...description, parent: null });
  const createdAtMs = Date.now();
  for (let minutes = 50; minutes < 12 * 60; minutes += 50) {
    vi.setSystemTime(createdAtMs + minutes * 60_000);
    const found = tokens.find(sessionToken(secret));
    expect(found && isExpired(found), `after ${minutes} minutes`).toBe(false);
    if (found) tokens.noteUse(found);
    await settled(tokens);
  }
  const [restarted] = new Tokens(stored, settings, ignore).list();
  expect(restarted).toEqual(tokens.byId(token.id));
  expect(restarted?.session?.idleAtMs).toBeGreaterThan(Date.now());
  vi.setSystemTime(createdAtMs + 12 * hourMs);
  expect(restarted && isExpired(restarted)).toBe(true);
});

it('a session that is idle for an hour ends, is no API token of the limit, and makes room', async () => {
  const tokens = new Tokens(stored, settings, ignore);
  const idle = await tokens.createSession({ ...description, parent: null });
  for (let count = 0; count < 2; count += 1) await tokens.create({ ...description, expiresAtMs: null });
  await expect(tokens.create({ ...description, expiresAtMs: null })).rejects.toMatchObject({
    code: 'limit_reached',
  });
  vi.setSystemTime(Date.now() + hourMs);
  expect(isExpired(idle.token)).toBe(true);
  await tokens.createSession({ ...description, parent: null });
  expect(tokens.byId(idle.token.id)).toBeUndefined();
});

it('sessions of the bootstrap token end when it is turned off', async () => {
  const tokens = new Tokens(stored, settings, ignore);
  const [parent = null] = tokens.list().filter(({ session }) => session === null);
  const own = await tokens.createSession({ ...description, parent });
  const ofBootstrap = await tokens.createSession({ ...description, parent: null });
  await tokens.revokeBootstrapSessions();
  expect(tokens.find(sessionToken(ofBootstrap.secret))).toBeUndefined();
  expect(tokens.findEndedSession(sessionToken(ofBootstrap.secret))?.id).toBe(ofBootstrap.token.id);
  expect(tokens.find(sessionToken(own.secret))?.id).toBe(own.token.id);
});

it('verify reports a session of a token that does not exist', async () => {
  const tokens = new Tokens(stored, settings, ignore);
  const [parent = null] = tokens.list().filter(({ session }) => session === null);
  await tokens.createSession({ ...description, parent });
  const findingsOf = (): readonly string[] => {
    const file = new DatabaseFile(folder);
    const findings = new Findings(20);
    verifyRegistry({ part: 'registry', tables: file.tables(), findings, onRecord: ignore });
    file.close();
    return findings.sentences;
  };
  expect(findingsOf()).toEqual([]);
  const table = new Collection(stored, tokenTable);
  await stored.write(() => void table.delete([parent?.id ?? '']));
  const [first] = findingsOf();
  expect(first).toContain('is a session of a token that does not exist');
});
