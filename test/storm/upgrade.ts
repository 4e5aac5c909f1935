import { rmSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { readManifest } from '../../src/storage/lmdb/environment/manifest.ts';
import { migrations } from '../../src/storage/postgres/schema/migrations.ts';
import { createFleet } from '../harness/devices/device.ts';
import { temporaryFolder } from '../harness/machine/temporary-folder.ts';
import { execute } from '../harness/server/command.ts';
import { mainFile, TestServer } from '../harness/server/server.ts';
import { faults, type Ground } from './cluster-faults.ts';
import { ClusterStorm } from './cluster-storm.ts';
import { PostgresPair } from './clusters/postgres-pair.ts';
import { EarlierVersion } from './earlier-version.ts';

/** `npm run test:upgrade`: two nodes of an earlier commit become two of today's under load, one after the other. */
const { values } = parseArgs({
  options: {
    /** A commit, tag or branch; the last one with other tables than today's if absent. */
    from: { type: 'string' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});
using earlier = EarlierVersion.build(values.from);
console.log(`from ${earlier.commit}, seed ${values.seed}`);
await using cluster = await PostgresPair.start();
const storm = await ClusterStorm.start({
  clusters: [cluster],
  seed: Number(values.seed),
  workers: 2,
  databaseTimeoutMilliseconds: 5_000,
  program: earlier.mainFile,
});
const { findings, nodes } = storm;
const [one, two] = nodes;
const before = await tablesVersion();
await round('migrate of the new version, then kill -9 of a node of the one before', async (ground) => {
  if (before < migrations.length) await expectRefusal(mainFile, /Run "fleetpost migrate"/);
  await storm.migrate();
  await killed(ground);
});
await round('upgrade of the first node, then kill -9 of a node, one of each version', async (ground) => {
  await one?.upgrade();
  await killed(ground);
});
await round('upgrade of the second node', async () => two?.upgrade());
await storm.finish();
await storm.ask(0, `INSERT INTO migration VALUES (${before + 2}, 0) ON CONFLICT DO NOTHING`);
await expectRefusal(earlier.mainFile, /newer than this program/);
await tryFolder();
findings.printAll();

function killed(ground: Ground): Promise<void> {
  return faults['kill -9 of a node']?.(ground) ?? Promise.resolve();
}

/** Load, and that meanwhile; then a look at all that was answered. */
async function round(what: string, happens: (ground: Ground) => Promise<unknown>): Promise<void> {
  await storm.round(what, async (ground) => void (await happens(ground)));
  findings.printViolations();
  const times = storm.outages
    .slice(-2)
    .map(({ node, milliseconds }) => `${node} ${Math.round(milliseconds)} ms`);
  console.log(`${what}: out ${times.join(', ')}; ${findings.progress}`);
}

async function tablesVersion(): Promise<number> {
  const [row] = await storm.ask<{ version: number }>(0, 'SELECT max(version) AS version FROM migration');
  return row?.version ?? 0;
}

/** A node of that program must not start on the tables as they are, and say why. */
async function expectRefusal(program: string, reason: RegExp): Promise<void> {
  const { status, stderr } = await execute(process.execPath, [program, 'serve'], {
    ...storm.environment,
    FLEETPOST_LISTEN: '127.0.0.1:0',
    FLEETPOST_ADMIN: '127.0.0.1:0',
    FLEETPOST_DATA: temporaryFolder(),
  });
  findings.expect(status > 0 && reason.test(stderr), () => `a node ended with ${status}: ${stderr}`);
  findings.count(`refused: ${reason.source}`);
}

/** A data folder of the version before is served by that of today; then by the one before again, or refused as it is. */
async function tryFolder(): Promise<void> {
  const folder = temporaryFolder();
  const start = (program: string): Promise<TestServer> =>
    TestServer.start({ shards: 2 }, folder, { program });
  const first = await start(earlier.mainFile);
  const fleet = await createFleet(first);
  const device = await fleet.createDevice();
  await device.sendMail('note', '{}');
  await first.stop();
  const format = readManifest(folder)?.format;
  for (const program of [mainFile, earlier.mainFile]) {
    try {
      const server = await start(program);
      const { body } = await server.admin<{ items: unknown[] }>('GET', `${device.adminPath}/mail`);
      findings.expect(body.items.length === 1, () => `a folder has ${JSON.stringify(body)} for its mail`);
      await server.stop();
      findings.count('data folder: served');
    } catch (error) {
      const isNewer = program !== mainFile && readManifest(folder)?.format !== format;
      findings.expect(isNewer && /Nothing was changed/.test(String(error)), () => String(error));
      findings.count('data folder: refused as newer');
    }
  }
  rmSync(folder, { recursive: true });
}
