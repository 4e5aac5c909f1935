import { TestDevice } from '../harness/devices/device.ts';
import type { TestServer } from '../harness/server/server.ts';
import { adminAttacks, attacks, floods, halves, type Target } from './attacks.ts';
import { tokenAttacks } from './token-attacks.ts';

/** A process of its own, so that making an attack does not slow down who watches. */
export interface AttackerOptions {
  names: string[];
  target: Target;
  fleetId: string;
  deviceId: string;
  secret: string;
  clients: number;
}

const { names, target, fleetId, deviceId, secret, clients } = JSON.parse(
  process.argv[2] ?? '',
) as AttackerOptions;
// Attacks ask a device for its credentials alone.
const device = new TestDevice(undefined as unknown as TestServer, fleetId, deviceId, secret);
for (const attack of [...attacks, ...adminAttacks, ...halves, ...floods, ...tokenAttacks]) {
  if (names.includes(attack.name)) await attack.start(target, device, clients);
}
process.stdout.write('under way\n');
