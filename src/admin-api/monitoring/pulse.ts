import type { PulseDocument, pulseRoutes } from '../../contract/monitoring/pulse.ts';
import { type DeviceKey, deviceIdOf } from '../../core/identity.ts';
import type { Registry } from '../../declarations/registry.ts';
import type { Handlers } from '../request/routes.ts';
import { timeTextOf } from '../request/times.ts';
import { type PulseHistory, pulseColumns } from './pulse-history.ts';

interface Parts {
  pulses: PulseHistory;
  registry: Registry;
  /** Estimates the busiest devices of a fleet, busiest first. */
  talkersOf(fleetId: string): Promise<{ device: DeviceKey; requestsPerSecond: number }[]>;
}

const busiestMax = 5;
const minuteMs = 60_000;

type Columns = Pick<PulseDocument, (typeof pulseColumns)[number]>;

/** Handles `/fleets/{fleet_id}/pulse`. */
export function pulseHandlers({ pulses, registry, talkersOf }: Parts): Handlers<typeof pulseRoutes> {
  return {
    'GET /fleets/{fleet_id}/pulse': async ({ params }) => {
      const { fleetId } = registry.fleet(params.fleet_id).fleet;
      const [{ fromMs, minutes }, talkers] = await Promise.all([pulses.of(fleetId), talkersOf(fleetId)]);
      const nowMs = Date.now();
      const column = (at: number) =>
        minutes.map((cells) => (Number.isNaN(cells[at]) ? null : (cells[at] ?? null)));
      return {
        time: timeTextOf(nowMs),
        from: timeTextOf(fromMs),
        last_seconds: Math.floor((nowMs % minuteMs) / 1_000),
        // Only the columns of devices have cells without a number
        ...(Object.fromEntries(pulseColumns.map((name, at) => [name, column(at)])) as unknown as Columns),
        busiest: talkers.slice(0, busiestMax).map(({ device, requestsPerSecond }) => ({
          device_id: deviceIdOf(device),
          requests_per_second: requestsPerSecond,
        })),
      };
    },
  };
}
