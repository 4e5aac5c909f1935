import { rmSync } from 'node:fs';
import { afterAll, expect, it } from 'vitest';
import { createLog } from '../../../src/core/telemetry/log.ts';
import { ClaimTokens } from '../../../src/declarations/claim-tokens.ts';
import { Registry } from '../../../src/declarations/registry.ts';
import { Tokens } from '../../../src/declarations/tokens.ts';
import { Actions } from '../../../src/features/actions/declaration/actions.ts';
import { Forwarders } from '../../../src/features/forwarders/declaration/forwarders.ts';
import { registryTables } from '../../../src/maintenance/environments.ts';
import { FleetDeletion } from '../../../src/server/control-plane/fleet-deletion.ts';
import type { RemoteServices } from '../../../src/server/control-plane/remote-services.ts';
import { temporaryFolder } from '../../harness/machine/temporary-folder.ts';
import { openEnvironment } from '../../harness/storage/environment.ts';

const folder = temporaryFolder();
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const settings = {
  current: {
    fleetsMax: 9,
    schemasPerFleetMax: 9,
    schemaStepsMax: 1_000,
    schemaPatternStatesMax: 10_000,
    schemaChecksMax: 9,
    apiTokensMax: 9,
    claimTokensPerFleetMax: 9,
    actionsPerFleetMax: 9,
  },
};
const fleetId = 'GONEFLET';
const ignore = (): void => {};

it('nothing of a fleet is removed while a backup runs, and its record goes last', async () => {
  const stored = openEnvironment(folder, registryTables);
  const registry = new Registry(stored, { settings });
  const tokens = new Tokens(stored, settings, ignore);
  const claimTokens = new ClaimTokens(stored, registry, settings, ignore);
  await registry.createFleet({ fleetId, name: '', createdAtMs: 1 });
  await tokens.create({ name: 'one', scopes: ['read'], fleetId, expiresAtMs: null });
  await registry.deleteFleet(fleetId);

  let isBackupRunning = true;
  let consumers = ['billing'];
  // A part that fails keeps the fleet.
  let failure: Error | undefined = new Error('not now');
  let attempts = 0;
  const services = {
    broadcasts: { list: () => ({ items: [], next: null }) },
    consumers: {
      list: async () => consumers.map((name) => ({ name })),
      async delete() {
        expect(registry.declared(fleetId)).toMatchObject({ fleetId });
        attempts += 1;
        if (failure !== undefined) throw failure;
        consumers = [];
      },
    },
  } as unknown as RemoteServices;
  const start = () =>
    new FleetDeletion({
      registry,
      tokens,
      claimTokens,
      actions: new Actions(stored, registry, { settings }),
      forwarders: new Forwarders(stored, registry, { forwardersPerFleetMax: 9 }),
      services,
      shards: [],
      lateWriteMilliseconds: 0,
      isBackupRunning: () => isBackupRunning,
      log: createLog('silent'),
    });
  const first = start();
  // Long enough for what should not happen: it looks each second.
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  expect(consumers).toEqual(['billing']);
  isBackupRunning = false;
  await expect.poll(() => attempts).toBeGreaterThan(0);
  await first.stop();
  expect(tokens.list()).toHaveLength(1);
  expect(registry.deleting()).toEqual([fleetId]);

  failure = undefined;
  const second = start();
  const left = () => [...registry.deleting(), ...registry.retired()];
  await expect.poll(left).toEqual([]);
  await second.stop();
  expect(consumers).toEqual([]);
  expect(tokens.list()).toEqual([]);
  expect(() => registry.declared(fleetId)).toThrow('There is no such fleet.');
  await registry.close();

  const again = new Registry(openEnvironment(folder, registryTables), { settings });
  expect(again.snapshots()).toEqual([]);
  await again.close();
});
