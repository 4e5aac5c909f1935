import { SingleFlight, yieldToEventLoop } from '../../core/async.ts';
import { MinuteRing, minuteOf } from '../../core/minute-ring.ts';
import { pulseKinds } from '../../domain/pulse-kinds.ts';

/** Requests that are counted by kind, and the devices that there were: the columns of a minute. */
export const pulseColumns = [...pulseKinds, 'connected', 'active'] as const;
const connectedAt = pulseColumns.indexOf('connected');
const activeAt = pulseColumns.indexOf('active');
/** A minute without requests, whose devices were not counted. */
const blank = pulseColumns.map((_, at) => (at === connectedAt || at === activeAt ? Number.NaN : 0));

const minutesKept = 60;
/** Interval of taking counts from the threads. */
const takeMs = 10_000;
/** Maximum fleets that are kept; beyond, the one whose last request is longest ago is dropped. */
const fleetsMax = 4_096;
/** Time that counting devices may take in a minute; further fleets are counted in a later one. */
const countingMsMax = 300;

/** Devices of a fleet, as they are counted once a minute. */
export interface DevicesNow {
  connected: number;
  active: number;
}

interface Source {
  /** Takes the requests of each fleet since the last call, in the order of the columns. */
  takePulses(): Promise<[fleetId: string, counts: readonly number[]][]>;
  devicesOf(fleetId: string): Promise<DevicesNow>;
}

/** The last hour of each fleet that has requests, by minute. A fleet without any takes neither memory nor time. */
export class PulseHistory {
  readonly #source: Source;
  readonly #firstMinute: number;
  readonly #timer: NodeJS.Timeout;
  /** The fleet with the latest request comes last. */
  readonly #fleets = new Map<string, { history: MinuteRing; minute: number }>();
  readonly #taking = new SingleFlight(() => this.#take());
  #sampledMinute: number;
  /** Fleets that wait for their devices to be counted in this minute. */
  #waiting: string[] = [];

  constructor(source: Source, nowMs = Date.now()) {
    this.#source = source;
    this.#firstMinute = minuteOf(nowMs);
    this.#sampledMinute = this.#firstMinute - 1;
    this.#timer = setInterval(() => void this.#work().catch(() => {}), takeMs);
    this.#timer.unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** Minutes from the first one that is known, with what was requested until now. */
  async of(fleetId: string): Promise<{ fromMs: number; minutes: readonly Float64Array[] }> {
    await this.#taking.run();
    const last = minuteOf(Date.now());
    const { history } = this.#fleets.get(fleetId) ?? { history: new MinuteRing(minutesKept, blank, last) };
    return history.since(this.#firstMinute, last);
  }

  async #work(): Promise<void> {
    await this.#taking.run();
    const minute = minuteOf(Date.now());
    if (minute === this.#sampledMinute) return;
    this.#sampledMinute = minute;
    for (const [fleetId, { minute: last }] of this.#fleets)
      if (minute - last >= minutesKept) this.#fleets.delete(fleetId);
    await this.#count(minute);
  }

  async #take(): Promise<void> {
    const taken = await this.#source.takePulses();
    const minute = minuteOf(Date.now());
    for (const [fleetId, counts] of taken) {
      const fleet = this.#fleets.get(fleetId) ?? {
        history: new MinuteRing(minutesKept, blank, minute),
        minute,
      };
      const cells = fleet.history.at(minute);
      // A column of each
      for (const [at, count] of counts.entries()) cells[at] = (cells[at] as number) + count;
      this.#fleets.delete(fleetId);
      this.#fleets.set(fleetId, { ...fleet, minute });
    }
    for (const fleetId of this.#fleets.keys()) {
      if (this.#fleets.size <= fleetsMax) break;
      this.#fleets.delete(fleetId);
    }
  }

  /** Counts devices, of those first that had no turn in the minute before. */
  async #count(minute: number): Promise<void> {
    const left = this.#waiting.filter((fleetId) => this.#fleets.has(fleetId));
    this.#waiting = [...new Set([...left, ...this.#fleets.keys()])];
    const begunMs = performance.now();
    while (performance.now() - begunMs < countingMsMax) {
      const fleetId = this.#waiting.shift();
      if (fleetId === undefined) return;
      // A fleet that was deleted has none, and a store that fails now answers later.
      const now = await this.#source.devicesOf(fleetId).catch(() => undefined);
      const cells = this.#fleets.get(fleetId)?.history.at(minute);
      if (now !== undefined && cells !== undefined) {
        cells[connectedAt] = now.connected;
        cells[activeAt] = now.active;
      }
      await yieldToEventLoop();
    }
  }
}
