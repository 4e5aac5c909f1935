import { type PulseKind, pulseKinds } from '../../domain/pulse-kinds.ts';

/** Counts of requests, in the order of `pulseKinds`. */
export type PulseCounts = number[];

/** Maximum fleets with traffic that one thread counts; requests of further ones are not counted. */
const fleetsMax = 4_096;
const refused = pulseKinds.indexOf('refused');

/** Requests of one fleet since they were taken last. */
export class FleetPulse {
  readonly counts = new Float64Array(pulseKinds.length);
  /** False once nobody takes its counts any more: who has it looks for another. */
  isCounted = false;
}

interface CountedDevice {
  readonly fleetId: string;
  /** Its fleet's, once looked up. */
  pulse: FleetPulse | undefined;
}

/** The index of a route's kind, by its path. */
export function pulseKindOf(path: string): number {
  const [, , noun = ''] = path.split('/');
  const kinds: Readonly<Record<string, PulseKind>> = {
    heartbeat: 'heartbeats',
    datapoint: 'datapoints',
    msg: 'messages',
    mailbox: 'mailbox',
    sync: 'syncs',
  };
  return pulseKinds.indexOf(kinds[noun] ?? 'other');
}

/** Counts the requests of each fleet on one thread: an accepted one costs some nanoseconds, a fleet without any nothing. */
export class FleetPulses {
  readonly #fleets = new Map<string, FleetPulse>();
  /** Of fleets that there is no room for; never taken. */
  readonly #uncounted = new FleetPulse();

  accepted(device: CountedDevice, kind: number): void {
    let { pulse } = device;
    if (!pulse?.isCounted) {
      pulse = this.#of(device.fleetId);
      device.pulse = pulse;
    }
    // The index is one of `pulseKindOf`
    pulse.counts[kind] = (pulse.counts[kind] as number) + 1;
  }

  refused(fleetId: string): void {
    const { counts } = this.#of(fleetId);
    counts[refused] = (counts[refused] as number) + 1;
  }

  /** Takes the counts of all fleets that had requests since the last call. */
  take(): [fleetId: string, counts: PulseCounts][] {
    const taken: [string, PulseCounts][] = [];
    for (const [fleetId, pulse] of this.#fleets) {
      if (pulse.counts.every((count) => count === 0)) {
        pulse.isCounted = false;
        this.#fleets.delete(fleetId);
      } else taken.push([fleetId, [...pulse.counts]]);
      pulse.counts.fill(0);
    }
    return taken;
  }

  #of(fleetId: string): FleetPulse {
    const known = this.#fleets.get(fleetId);
    if (known !== undefined) return known;
    if (this.#fleets.size >= fleetsMax) return this.#uncounted;
    const pulse = new FleetPulse();
    pulse.isCounted = true;
    this.#fleets.set(fleetId, pulse);
    return pulse;
  }
}
