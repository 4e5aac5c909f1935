import type { TestDevice } from '../harness/device.ts';
import type { Findings } from './findings.ts';
import type { RecordLedger, SentRecord } from './record-ledger.ts';
import type { StormNode } from './storm-node.ts';

const eachMs = 50;
/** More than a frozen database holds up at once. */
const openMax = 200;

/** Writes to one node all the time, whatever becomes of them, to see for how long none is taken. */
export class OutageWatch {
  readonly node: StormNode;
  readonly #device: TestDevice;
  readonly #records: RecordLedger;
  readonly #findings: Findings;
  readonly #open = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #sequence = 0;
  #lastMs = performance.now();
  #longestMs = 0;

  constructor(node: StormNode, device: TestDevice, records: RecordLedger, findings: Findings) {
    this.node = node;
    this.#device = device;
    this.#records = records;
    this.#findings = findings;
  }

  start(): void {
    this.#lastMs = performance.now();
    this.#timer = setInterval(() => this.#probe(), eachMs);
  }

  /** From the last answer before on. */
  begin(): void {
    this.#longestMs = 0;
  }

  /** Settles when writes are taken again; answers the longest time without since `begin`. */
  async end(): Promise<number> {
    const fromMs = performance.now();
    while (this.#lastMs < fromMs) {
      if (performance.now() - fromMs > 120_000)
        throw new Error(`the node ${this.node.name} does not recover`);
      await new Promise((resolve) => setTimeout(resolve, eachMs));
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
    const token = `${this.#device.deviceId}-probe-${this.node.name}-${this.#sequence}`;
    const record: SentRecord = {
      token,
      sender: token,
      sequence: this.#sequence++,
      deviceId: this.#device.deviceId,
      kind: 'datapoint',
      payload: JSON.stringify({ token }),
      key: undefined,
      state: 'unanswered',
      sentAtMs: Date.now(),
      isRepeated: true,
      isStored: false,
    };
    this.#records.sending(record);
    const sent = client.device(this.#device, 'POST', '/v1/datapoint/any', record.payload).then(
      ({ status, text }) => {
        if (status === 201) this.#taken(record);
        else this.#findings.expect(status === 503, () => `a probe was answered ${status}: ${text}`);
      },
      () => {},
    );
    this.#open.add(sent);
    void sent.finally(() => this.#open.delete(sent));
  }

  #taken(record: SentRecord): void {
    record.state = 'answered';
    const nowMs = performance.now();
    this.#longestMs = Math.max(this.#longestMs, nowMs - this.#lastMs);
    this.#lastMs = nowMs;
  }
}
