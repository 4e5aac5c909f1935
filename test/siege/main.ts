import { parseArgs } from 'node:util';
import { type Attack, adminAttacks, attacks, floods, halves } from './attacks.ts';
import { operatorSiege, type Seen } from './operator-siege.ts';
import { type SiegeResult, siege } from './siege.ts';
import { tokenAttacks } from './token-attacks.ts';

/** `npm run test:siege -- --clients N --seconds S`: what well-behaved devices see under each attack, as tables. */
const { values } = parseArgs({
  options: {
    clients: { type: 'string', default: '4000' },
    seconds: { type: 'string', default: '10' },
    devices: { type: 'string', default: '50000' },
    /** Only those whose name contains it, at the admin API with a token. */
    only: { type: 'string' },
  },
});
const clients = Number(values.clients);
const seconds = Number(values.seconds);

function alone(list: readonly Attack[]): Attack[][] {
  return list.map((one) => [one]);
}

function print(title: string, results: readonly SiegeResult[]): void {
  console.log(title);
  console.table(
    results.map(({ name, requests, p50Ms, p99Ms, maxMs, grownMebibytes, cpuPercent }) => ({
      attack: name,
      requests,
      'p50 ms': p50Ms.toFixed(1),
      'p99 ms': p99Ms.toFixed(1),
      'max ms': maxMs.toFixed(0),
      'grown MiB': grownMebibytes,
      'server CPU %': cpuPercent,
    })),
  );
}

function describeSeen({ admin, fresh, turnMs }: Seen): Record<string, string> {
  return {
    'adm p50 ms': admin.p50Ms.toFixed(0),
    'adm p99 ms': admin.p99Ms.toFixed(0),
    'adm max ms': admin.maxMs.toFixed(0),
    'fresh p99 ms': fresh.p99Ms.toFixed(0),
    'fresh max ms': fresh.maxMs.toFixed(0),
    'longest turn ms': turnMs.toFixed(0),
  };
}

const { only = '' } = values;
console.log('one token at the admin API, and what another fleet sees');
console.table(
  (
    await operatorSiege(
      tokenAttacks.filter(({ name }) => name.includes(only)),
      { devices: Number(values.devices), seconds, quietSeconds: seconds },
    )
  ).flatMap(({ name, before, during }) => [
    { attack: 'just before', ...describeSeen(before) },
    { attack: name, ...describeSeen(during) },
  ]),
);
if (values.only !== undefined) process.exit(0);

print(`${clients} clients`, await siege(alone([...attacks, ...adminAttacks]), clients, seconds));
print(
  'half-sent bodies',
  await siege(alone(halves), clients, seconds, { claiming: true, deviceBytesPerSecondMax: 0 }),
);
print('floods, limits as they are by default', await siege(alone(floods), clients, seconds));
print(
  'floods, without deviceRequestsPerSecondMax',
  await siege(alone(floods), clients, seconds, { deviceRequestsPerSecondMax: 0 }),
);
