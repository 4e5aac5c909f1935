import type { World } from './world.ts';

/** Connections that one device floods over. */
const connections = 16;
/** Pause of one that failed, or a server that is down would be flooded with handshakes. */
const refusedMs = 200;

/** One device that sends heartbeats at a rate of its own, whatever it is answered. */
export class Flood {
  readonly #world: World;
  readonly #device: number;
  readonly #perMs: number;
  readonly #startMs: number;
  readonly #endMs: number;
  readonly #text: string;
  #sent = 0;
  readonly #busy = new Uint8Array(connections);

  constructor(world: World, device: number, perSecond: number, milliseconds: number) {
    this.#world = world;
    this.#device = device;
    this.#perMs = perSecond / 1_000;
    this.#startMs = world.nowMs();
    this.#endMs = this.#startMs + milliseconds;
    this.#text = world.textOf(device, 'POST', '/v1/heartbeat', 'Content-Length: 0\r\n');
  }

  /** Sends what is due; what finds all its connections busy is dropped. False when it is over. */
  advance(): boolean {
    const nowMs = this.#world.nowMs();
    if (nowMs >= this.#endMs) return false;
    for (; this.#sent < (nowMs - this.#startMs) * this.#perMs; this.#sent += 1) {
      const slot = this.#busy.indexOf(0);
      if (slot < 0) this.#world.counts.dropped += 1;
      else this.#send(slot, this.#startMs + this.#sent / this.#perMs);
    }
    return true;
  }

  #send(slot: number, dueMs: number): void {
    const world = this.#world;
    this.#busy[slot] = 1;
    world.counts.due += 1;
    let sentMs = 0;
    world.connections.send('own', {
      // No device has such a number: its connections are beside those of the device itself.
      device: -2 - slot - connections * this.#device,
      request: this.#text,
      isCut: false,
      onSent: () => {
        sentMs = world.nowMs();
      },
      onAnswer: (status) => {
        this.#busy[slot] = 0;
        const nowMs = world.nowMs();
        world.samples.add('flood', nowMs - dueMs, nowMs - sentMs);
        if (status === 429 || status === 503) world.counts.refused += 1;
        else if (status !== 201) world.complain(`a heartbeat of the flood was answered ${status}`);
      },
      onFailure: (isOurs) => {
        setTimeout(() => {
          this.#busy[slot] = 0;
        }, refusedMs);
        if (isOurs) world.counts.cut += 1;
        else world.counts.failures += 1;
      },
    });
  }
}
