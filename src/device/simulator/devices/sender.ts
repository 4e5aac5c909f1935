import { hash32, Noise } from '../payload/noise.ts';
import type { SendBeat } from './plan.ts';
import { shownBody, type World } from './world.ts';

type Fault = 'invalid' | 'secret' | 'cut' | 'unkeyed';

/** Bounds of a sync (D29), less what is around its records. */
const syncRecordsMax = 500;
const syncBytesMax = 65_000;

/** A reading until it is answered. */
export interface Reading {
  beat: SendBeat;
  /** Number of the reading among the device's own. */
  number: number;
  stamp: number;
  dueMs: number;
  /** When it was tried first; 0: never. */
  keyMs: number;
  fault: Fault | undefined;
  isInFlight: boolean;
}

/** Sends what devices measure, of each in its order and one at a time, again and again until it is answered. */
export class ReadingSender {
  readonly #world: World;
  /** Only of devices that have something to send. */
  readonly #queues = new Map<number, Reading[]>();
  /** Readings in all queues. */
  queued = 0;

  constructor(world: World) {
    this.#world = world;
  }

  /** Takes a reading; it waits until it is its turn. */
  take(device: number, beat: SendBeat, dueMs: number): void {
    const { states, task } = this.#world;
    const number = (states.readings[device] ?? 0) + 1;
    states.readings[device] = number;
    // Each has a time of its own, by which it is found in the log.
    const stamp = Math.max((states.stamp[device] ?? 0) + 1, Date.now() - task.epochMs);
    states.stamp[device] = stamp;
    const reading: Reading = {
      beat,
      number,
      stamp,
      dueMs,
      keyMs: 0,
      fault: this.#faultOf(device),
      isInFlight: false,
    };
    const queue = this.#queues.get(device);
    if (queue === undefined) this.#queues.set(device, [reading]);
    else queue.push(reading);
    this.queued += 1;
    this.#bound(device);
  }

  /** Sends the oldest reading; false if there is none. */
  next(device: number): boolean {
    const reading = this.#queues.get(device)?.[0];
    if (reading === undefined) return false;
    const world = this.#world;
    if (reading.keyMs === 0) reading.keyMs = Date.now();
    else world.counts.retries += 1;
    const { beat, fault } = reading;
    const isCut = fault === 'cut';
    // It is whole the next time.
    if (isCut) reading.fault = undefined;
    reading.isInFlight = true;
    world.request(device, {
      route: beat.route,
      method: 'POST',
      path: beat.path,
      headers: this.#headersOf(device, reading),
      body: fault === 'invalid' ? '{"spoilt":' : this.#shownBody(device, reading),
      dueMs: Math.max(reading.dueMs, world.states.readyMs[device] ?? 0),
      isCut,
      isSpoilt: fault === 'secret' || fault === 'invalid',
      ...(fault === 'secret' && { secret: `FOS-${'A'.repeat(32)}` }),
      onAnswer: (status, text) => this.answered(device, reading, status, text),
      onLater: (isDoubtful) => this.#onLater(device, reading, isDoubtful),
    });
    return true;
  }

  /** Begins to send the oldest readings whose numbers follow each other, as a sync has room, and answers them as its records. */
  run(device: number): { readings: Reading[]; records: string[] } {
    const run: { readings: Reading[]; records: string[] } = { readings: [], records: [] };
    let bytes = 0;
    for (const reading of this.#queues.get(device) ?? []) {
      const last = run.readings.at(-1);
      const isNext = last === undefined || reading.number === last.number + 1;
      if (!isNext || run.readings.length === syncRecordsMax) break;
      const record = this.#recordOf(device, reading);
      bytes += Buffer.byteLength(record) + 1;
      if (bytes > syncBytesMax && last !== undefined) break;
      run.readings.push(reading);
      run.records.push(record);
    }
    if (run.readings.some(({ keyMs }) => keyMs !== 0)) this.#world.counts.retries += 1;
    for (const reading of run.readings) {
      reading.keyMs ||= Date.now();
      reading.isInFlight = true;
    }
    return run;
  }

  /** Those of a sync that were not answered wait for the next. */
  later(readings: readonly Reading[]): void {
    for (const reading of readings) reading.isInFlight = false;
  }

  /** At the end: what was tried and never answered may be in the log. Answers how many were left. */
  finish(): number {
    let left = 0;
    for (const [device, queue] of this.#queues) {
      for (const reading of queue) {
        left += 1;
        if (reading.keyMs !== 0) this.#doubt(device, reading);
      }
    }
    return left;
  }

  /** Its answer is there, and its last. */
  answered(device: number, reading: Reading, status: number, text: string): void {
    const world = this.#world;
    const { ledger, counts } = world;
    const { fault, beat, stamp } = reading;
    this.#remove(device, reading);
    const isSpoilt = fault === 'invalid' || fault === 'secret';
    if (status === 201) {
      ledger.send(world.numberOf(device), stamp, 'answered');
      if (isSpoilt) world.complain(`a ${beat.route} that is not as it should be was answered 201`);
    } else if (isSpoilt && status >= 400 && status < 500) counts.faulty += 1;
    else {
      this.#doubt(device, reading);
      world.complain(`${beat.path} was answered ${status}: ${shownBody(text)}`);
    }
  }

  #onLater(device: number, reading: Reading, isDoubtful: boolean): void {
    reading.isInFlight = false;
    const { fault } = reading;
    if (fault === undefined) return;
    // A spoilt request is not repeated, and neither is one without a key.
    this.#remove(device, reading);
    if (fault === 'unkeyed' && isDoubtful) this.#doubt(device, reading);
  }

  #doubt(device: number, { stamp }: Reading): void {
    this.#world.ledger.send(this.#world.numberOf(device), stamp, 'doubted');
  }

  #remove(device: number, reading: Reading): void {
    const queue = this.#queues.get(device);
    const at = queue?.indexOf(reading) ?? -1;
    if (queue === undefined || at < 0) return;
    queue.splice(at, 1);
    this.queued -= 1;
    if (queue.length === 0) this.#queues.delete(device);
  }

  /** Drops the oldest that is not in flight where too many wait. */
  #bound(device: number): void {
    const queue = this.#queues.get(device) ?? [];
    if (queue.length <= this.#world.planOf(device).queueMax) return;
    const oldest = queue.find(({ isInFlight }) => !isInFlight);
    if (oldest === undefined) return;
    this.#remove(device, oldest);
    this.#world.counts.dropped += 1;
    if (oldest.keyMs !== 0) this.#doubt(device, oldest);
  }

  #faultOf(device: number): Fault | undefined {
    const { invalid, secret, cut, unkeyed } = this.#world.planOf(device);
    if (invalid + secret + cut + unkeyed === 0) return undefined;
    let drawn = this.#world.draw(device);
    for (const [fault, share] of [
      ['invalid', invalid],
      ['secret', secret],
      ['cut', cut],
      ['unkeyed', unkeyed],
    ] as const) {
      if (drawn < share) return fault;
      drawn -= share;
    }
    return undefined;
  }

  #shownBody(device: number, { beat, number }: Reading): string {
    const { scenario } = this.#world.task;
    return beat.maker.make(new Noise(scenario.seed, this.#world.numberOf(device), number));
  }

  #recordOf(device: number, reading: Reading): string {
    const kind = reading.beat.route;
    const recordedAt = new Date(this.#world.task.epochMs + reading.stamp).toISOString();
    const payload = this.#shownBody(device, reading);
    return `{"kind":"${kind}","schema":"${reading.beat.schema}","payload":${payload},"recorded_at":"${recordedAt}"}`;
  }

  #headersOf(device: number, { stamp, number, keyMs, fault }: Reading): string {
    const recorded = `Recorded-At: ${new Date(this.#world.task.epochMs + stamp).toISOString()}\r\n`;
    if (fault === 'unkeyed') return recorded;
    const time = keyMs.toString(16).padStart(12, '0');
    const first = hash32(this.#world.task.scenario.seed, this.#world.numberOf(device), number);
    const second = hash32(first, stamp, keyMs | 0);
    const hex = first.toString(16).padStart(8, '0') + second.toString(16).padStart(8, '0');
    const key = `${time.slice(0, 8)}-${time.slice(8)}-7${hex.slice(0, 3)}-8${hex.slice(3, 6)}-${hex.slice(4)}`;
    return `${recorded}Idempotency-Key: ${key}\r\n`;
  }
}
