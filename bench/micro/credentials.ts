import { Fleets } from '../../src/declarations/fleet.ts';
import { authenticate } from '../../src/device-api/auth/authentication.ts';
import { DeviceCache } from '../../src/device-api/auth/cached-device.ts';
import { allocateLockouts, Lockouts } from '../../src/device-api/auth/lockouts.ts';
import type { HttpContext } from '../../src/device-api/server/context.ts';
import { RequestHeaders } from '../../src/device-api/server/request-headers.ts';
import { configWith } from '../../test/harness/server/config.ts';
import { fleetId } from '../servers/devices.ts';
import { type Group, type Microbench, repeated } from './microbench.ts';
import { requestWith } from './request.ts';
import { cycled } from './samples.ts';
import { openTemporaryShard } from './temporary-shard.ts';

const deviceCount = 1_000;

/** The check of the three credential headers: for a device seen before, and for one not seen yet. */
export async function credentials(): Promise<Group> {
  const { shard, devices, ...opened } = await openTemporaryShard(deviceCount);
  const headers = devices.map(
    ({ deviceId, secret }): RequestHeaders =>
      new RequestHeaders(
        requestWith({ 'x-fleet-id': fleetId, 'x-device-id': deviceId, 'x-device-secret': secret }),
      ),
  );
  const snapshot = { fleet: { fleetId, name: '', createdAtMs: Date.now() }, schemas: [] };
  const config = configWith();
  const shared = {
    config,
    lockouts: new Lockouts(allocateLockouts('seed'), config.settings),
    fleets: new Fleets([snapshot], { settings: config.settings, defersCompiling: true, onDisabled() {} }),
    shards: { of: () => shard },
  };
  // The rest of the context belongs to endpoints.
  const contextOf = (devicesMax: number): HttpContext => {
    const context = { ...shared, deviceCache: new DeviceCache(devicesMax) };
    return context satisfies { [name in keyof HttpContext]?: unknown } as unknown as HttpContext;
  };
  const check = (workload: string, context: HttpContext): Microbench => ({
    ...repeated(workload, (index) => authenticate(cycled(headers, index), context, { address: '127.0.0.1' })),
    conditions: { devices: deviceCount },
  });
  return {
    benches: [
      check('credentials of a known device', contextOf(2 * deviceCount)),
      // It remembers two, so that every one of the thousand comes as if for the first time.
      check('credentials at first sight', contextOf(2)),
    ],
    [Symbol.asyncDispose]: opened[Symbol.asyncDispose],
  };
}
