/** Claims whose commit has no answer. */

import { rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { ClaimTokens } from '../../../src/declarations/claim-tokens.ts';
import { Registry } from '../../../src/declarations/registry.ts';
import type { AuditLog } from '../../../src/domain/audit-log.ts';
import { Claims } from '../../../src/features/claiming/claims.ts';
import { registryTables } from '../../../src/maintenance/environments.ts';
import { openPostgresShard } from '../../../src/storage/postgres/writes/open-shard.ts';
import { temporaryFolder } from '../../harness/machine/temporary-folder.ts';
import { createServed } from '../../harness/postgres/postgres.ts';
import { configWith } from '../../harness/server/config.ts';
import { openEnvironment } from '../../harness/storage/environment.ts';
import { optionsOf } from '../../storage/contract/postgres-engine.ts';

const fleetId = 'FLEET001';

/** Leads to the database, and cuts a connection between its COMMIT and the answer while it is told to. */
class CuttingPath {
  readonly folder = temporaryFolder();
  cuts = false;
  readonly #server: Server;

  constructor(socketFolder: string) {
    const name = '.s.PGSQL.5432';
    this.#server = createServer((near) => this.#lead(near, connect(join(socketFolder, name))));
    this.#server.listen(join(this.folder, name));
  }

  #lead(near: Socket, far: Socket): void {
    let isCommitting = false;
    near.on('data', (bytes) => {
      isCommitting ||= this.cuts && bytes.includes('COMMIT');
      far.write(bytes);
    });
    far.on('data', (bytes) => {
      if (!isCommitting) near.write(bytes);
      else if (bytes.includes('COMMIT')) near.destroy();
    });
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on('close', () => to.destroy()).on('error', () => {});
    }
  }

  close(): void {
    this.#server.close();
    rmSync(this.folder, { recursive: true });
  }
}

async function open() {
  const url = new URL((await createServed()).replace('@/', '@localhost/'));
  const path = new CuttingPath(url.searchParams.get('host') ?? '');
  url.searchParams.set('host', path.folder);
  const options = optionsOf(url.href, { sweepMilliseconds: 600_000 });
  const settings = { ...options.settings.current };
  const shard = await openPostgresShard({ ...options, settings: { current: settings } });
  onTestFinished(async () => {
    await shard.close();
    path.close();
  });
  return { shard, path, settings };
}

it('a claim whose commit has no answer keeps its use, for its device may exist; one that is refused gives it back', async () => {
  const { shard, path, settings } = await open();
  const folder = temporaryFolder();
  const stored = openEnvironment(folder, registryTables);
  onTestFinished(async () => {
    await stored.close();
    rmSync(folder, { recursive: true });
  });
  const config = configWith();
  const registry = new Registry(stored, config);
  await registry.createFleet({ fleetId, name: '', createdAtMs: 1 });
  const claimTokens = new ClaimTokens(stored, registry, config.settings, () => {});
  const made = { fleetId, name: 'line', devicesMax: 2, tags: [], idPattern: null, expiresAtMs: null };
  const { secret } = await claimTokens.create(made);
  const claims = new Claims({
    config,
    claimTokens,
    shards: { of: () => shard },
    audit: { begin: async () => ({}), end: async () => {} } as unknown as AuditLog,
  });
  const claim = () => claims.claim({ fleetId, claimToken: secret, address: '127.0.0.1' });
  const state = async () => ({
    uses: claimTokens.list(fleetId)[0]?.devicesClaimed,
    devices: (await shard.devices.ids(fleetId, '', 10)).length,
  });

  path.cuts = true;
  await expect(claim()).rejects.toMatchObject({ code: 'unavailable' });
  path.cuts = false;
  await expect.poll(state).toEqual({ uses: 1, devices: 1 });

  settings.shardQueueMax = 0;
  await expect(claim()).rejects.toMatchObject({ code: 'unavailable' });
  expect(await state()).toEqual({ uses: 1, devices: 1 });
  settings.shardQueueMax = 1_000;
  await claim();
  expect(await state()).toEqual({ uses: 2, devices: 2 });
});
