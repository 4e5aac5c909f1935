import { sleep } from '../../src/core/async.ts';
import type { TestDevice } from '../harness/devices/device.ts';
import type { Ledger } from './ledger.ts';
import type { StormNode } from './storm-node.ts';

const eachMs = 50;
/** More than a frozen database holds up at once. */
const openMax = 200;

/** Writes to one node all the time, whatever becomes of them, to see for how long none is taken. */
export class OutageWatch {
  readonly node: StormNode;
  readonly #device: TestDevice;
  readonly #ledger: Ledger;
  readonly #open = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #sequence = 0;
  #lastMs = performance.now();
  #longestMs = 0;

  constructor(node: StormNode, device: TestDevice, ledger: Ledger) {
    this.node = node;
    this.#device = device;
    this.#ledger = ledger;
  }

  start(): void {
    this.#lastMs = performance.now();
    this.#timer = setInterval(() => this.#probe(), eachMs);
  }

  /** Begins an outage, counted from the last answer before on. */
  begin(): void {
    this.#longestMs = 0;
  }

  /** Settles when writes are taken again; answers the longest time without since `begin`. */
  async end(): Promise<number> {
    const fromMs = performance.now();
    while (this.#lastMs < fromMs) {
      if (performance.now() - fromMs > 120_000)
        throw new Error(`the node ${this.node.name} does not recover`);
      await sleep(eachMs);
    }
    return this.#longestMs;
  }

  /** Settles when nothing is under way any more. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#open);
  }

  #probe(): void {
    const { client } = this.node;
    if (client === undefined || this.#open.size >= openMax) return;
    const record = this.#ledger.records.sending({
      name: `${this.#device.deviceId}-probe-${this.node.name}`,
      deviceId: this.#device.deviceId,
      sequence: this.#sequence++,
      kind: 'datapoint',
    });
    record.sender.late.add(record.sequence);
    const sent = client.device(this.#device, 'POST', '/v1/datapoint/any', record.payload).then(
      (answer) => {
        if (this.#ledger.take(record, answer)) this.#noteAnswer();
      },
      () => {},
    );
    this.#open.add(sent);
    void sent.finally(() => this.#open.delete(sent));
  }

  #noteAnswer(): void {
    const nowMs = performance.now();
    this.#longestMs = Math.max(this.#longestMs, nowMs - this.#lastMs);
    this.#lastMs = nowMs;
  }
}
