import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { Postgres } from '../harness/postgres/postgres.ts';
import { mainFile } from '../harness/server/server.ts';

/** `npm run test:fleet`: a simulated fleet of all profiles with faults, on a data folder and on two nodes. */
const { values } = parseArgs({
  options: {
    devices: { type: 'string', default: '5000' },
    for: { type: 'string', default: '10m' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    on: { type: 'string', default: 'lmdb,postgres' },
    /** Further arguments of the command, for instance `--speed 2`. */
    more: { type: 'string', default: '' },
  },
});

/** Runs the simulator with these options beside those of all; answers its exit status. */
async function simulate(own: readonly string[]): Promise<number> {
  const common = ['--devices', values.devices, '--for', values.for, '--seed', values.seed];
  const more = values.more.split(' ').filter((word) => word !== '');
  const args = ['simulate', '--chaos', ...common, '--assert', 'errors=0', ...own, ...more];
  const [status] = (await once(
    spawn(process.execPath, [mainFile, ...args], { stdio: ['ignore', 'inherit', 'inherit'] }),
    'close',
  )) as [number | null];
  return status ?? 1;
}

let failed = 0;
for (const engine of values.on.split(',')) {
  console.log(`\n${values.devices} devices for ${values.for} on ${engine}, seed ${values.seed}`);
  if (engine === 'postgres') {
    await using postgres = await Postgres.start(['max_connections=200']);
    const database = await postgres.create();
    failed += await simulate(['--nodes', '2', '--database', database]);
  } else failed += await simulate([]);
}
console.log(
  failed === 0 ? '\nNothing was lost, doubled or out of order.' : '\nNot all is as it must be: see above.',
);
process.exitCode = failed === 0 ? 0 : 1;
