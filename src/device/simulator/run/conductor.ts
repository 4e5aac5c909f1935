import { below, pathTo } from '../../../contract/routes/path.ts';
import { sleep } from '../../../core/async.ts';
import { formatUuid, generateUuid } from '../../../core/uuid.ts';
import { pickDevice, processOf } from '../devices/simulated-devices.ts';
import { simulatedDeviceId } from '../devices/simulated-identity.ts';
import { Noise } from '../payload/noise.ts';
import { PayloadMaker } from '../payload/payload-maker.ts';
import type { ScenarioEvent } from '../scenario/profile.ts';
import { parseDuration } from '../scenario/quantity.ts';
import { noticeName, type Scenario } from '../scenario/scenario.ts';
import type { PatientAdmin } from './admin-access.ts';
import type { DeviceProcesses } from './device-processes.ts';
import type { OwnServers } from './own-servers.ts';

const broadcastPollMs = 500;
const broadcastMsMax = 600_000;
const graceUsual = '60s';

interface ConductorParts {
  admin: PatientAdmin;
  fleetId: string;
  scenario: Scenario;
  processes: DeviceProcesses;
  processCount: number;
  servers: OwnServers | undefined;
  onEvent(text: string): void;
}

/** Makes the events of a scenario happen, each at its time. */
export class Conductor {
  /** Ended broadcasts: how many mailboxes each has come to. */
  readonly broadcasts: { name: string; queued: number }[] = [];
  readonly #parts: ConductorParts;
  #number = 0;

  constructor(parts: ConductorParts) {
    this.#parts = parts;
  }

  /** Settles when all events until the signal have happened, and what they began is over. */
  async run(signal: AbortSignal): Promise<void> {
    const startMs = performance.now();
    const begun: Promise<void>[] = [];
    for (const event of this.#parts.scenario.events) {
      await sleep(startMs + parseDuration(event.at) - performance.now(), signal);
      if (signal.aborted) break;
      begun.push(this.#happen(event));
      // A failure is reported by the `Promise.all` below; until then it must not count as unhandled.
      begun.at(-1)?.catch(() => {});
    }
    await Promise.all(begun);
  }

  async #happen(event: ScenarioEvent): Promise<void> {
    const { processes, onEvent, servers } = this.#parts;
    this.#number += 1;
    if (event.event === 'ramp') {
      // One at the very begin is how the devices start.
      if (parseDuration(event.at) === 0) return;
      onEvent(`all devices lose their power, and come back within ${event.over}`);
      processes.order({ type: 'ramp', milliseconds: parseDuration(event.over) });
    } else if (event.event === 'storm') {
      onEvent(
        `all devices reconnect, ${event.jitter === undefined ? 'at once' : `each within ${event.jitter}`}`,
      );
      processes.order({ type: 'storm', jitterMs: parseDuration(event.jitter ?? '0s') });
    } else if (event.event === 'kill') {
      onEvent('kill -9 of a server');
      await servers?.kill();
    } else if (event.event === 'broadcast') await this.#broadcast(event.name ?? noticeName);
    else if (event.event === 'rotate')
      await this.#rotate(event.share, parseDuration(event.grace ?? graceUsual));
    else this.#flood(event.perSecond, parseDuration(event.for));
  }

  async #broadcast(name: string): Promise<void> {
    const { admin, fleetId, scenario, onEvent } = this.#parts;
    onEvent(`a broadcast of ${name} to all devices`);
    const maker = new PayloadMaker(name, scenario.schemas.mail[name] ?? {});
    const payload = JSON.parse(maker.make(new Noise(scenario.seed, this.#number, 0))) as Record<
      string,
      unknown
    >;
    const json = { name, payload, to: { all: true as const } };
    const path = pathTo('/fleets/{fleet_id}/broadcasts', { fleet_id: fleetId });
    const { broadcast_id } = await admin.request('POST', path, { json }, formatUuid(generateUuid()));
    const own = below(path, '/{broadcast_id}', { broadcast_id });
    const endMs = performance.now() + broadcastMsMax;
    while (performance.now() < endMs) {
      await sleep(broadcastPollMs);
      const { state, queued } = await admin.request('GET', own);
      if (state !== 'done') continue;
      this.broadcasts.push({ name, queued });
      return;
    }
    throw new Error(`the broadcast ${broadcast_id} did not end`);
  }

  async #rotate(share: number, graceMs: number): Promise<void> {
    const { admin, fleetId, scenario, processes, processCount, onEvent } = this.#parts;
    const count = Math.ceil(share * scenario.devices);
    onEvent(`${count} devices get new secrets`);
    const chosen = new Set<number>();
    for (let index = 0; chosen.size < count && index < 4 * count; index += 1) {
      chosen.add(pickDevice(scenario.seed, index + this.#number * scenario.devices, scenario.devices));
    }
    for (const device of chosen) {
      const { process, local } = processOf(device, processCount);
      processes.orderOne(process, { type: 'rotating', device: local });
      const { device_secret: secret } = await admin.request(
        'POST',
        pathTo('/fleets/{fleet_id}/devices/{device_id}/rotate-secret', {
          fleet_id: fleetId,
          device_id: simulatedDeviceId(device),
        }),
        { json: { grace_seconds: Math.round(graceMs / 1_000) } },
      );
      processes.orderOne(process, { type: 'rotated', device: local, secret });
    }
  }

  #flood(perSecond: number, milliseconds: number): void {
    const { scenario, processes, processCount, onEvent } = this.#parts;
    const device = pickDevice(scenario.seed, this.#number, scenario.devices);
    onEvent(`the device ${simulatedDeviceId(device)} sends ${perSecond} heartbeats a second`);
    const { process, local } = processOf(device, processCount);
    processes.orderOne(process, { type: 'flood', device: local, perSecond, milliseconds });
  }
}
