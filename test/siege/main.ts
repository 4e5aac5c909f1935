import { parseArgs } from 'node:util';
import { type Attack, adminAttacks, attacks, floods, halves } from './attacks.ts';
import { type SiegeResult, siege } from './siege.ts';

/** `npm run test:siege -- --clients N --seconds S`: what well-behaved devices see under each attack, as tables. */
const { values } = parseArgs({
  options: { clients: { type: 'string', default: '4000' }, seconds: { type: 'string', default: '10' } },
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
