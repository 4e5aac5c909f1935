import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createHistogram } from 'node:perf_hooks';
import { connect, createSecureContext } from 'node:tls';
import { uuidv7 } from 'uuidv7';
import { ClientConnection } from '../../src/device/simulator/connection/client-connection.ts';
import type { GeneratorReport } from './generator.ts';
import type { LoopProcessOptions } from './open-loop.ts';
import { keyPlace, lengthDigits } from './requests.ts';

const options = JSON.parse(process.argv[2] ?? '') as LoopProcessOptions;
const { connections, ratePerSecond, requestsCount, statuses, turnMs, urls } = options;

/** So that opening thousands of connections does not let any time out. */
const handshakesAtOnce = 32;
/** Time that the last answers have. */
const drainMs = 10_000;
/** How often a closed loop looks whether it is over. */
const closedLoopTurnMs = 1;

interface Prebuilt {
  bytes: Buffer;
  /** Offset of its Idempotency-Key; -1 for none. */
  keyAt: number;
}

function readRequests(file: string): Prebuilt[] {
  const all = readFileSync(file);
  const requests: Prebuilt[] = [];
  for (let at = 0; at < all.length; ) {
    const start = at + lengthDigits;
    at = start + Number(all.toString('latin1', at, start));
    const bytes = all.subarray(start, at);
    requests.push({ bytes, keyAt: bytes.indexOf(keyPlace) });
  }
  return requests;
}

function bytesOf({ bytes, keyAt }: Prebuilt): Buffer {
  if (keyAt < 0) return bytes;
  const keyed = Buffer.from(bytes);
  keyed.write(uuidv7(), keyAt, 'latin1');
  return keyed;
}

/**
 * Sends at a constant rate: the request of number N is due N intervals after the start, come what may. Without
 * a rate it is a closed loop, and a request is due when a connection is idle.
 */
class Loop {
  readonly #requests = readRequests(options.requestFile);
  readonly #intervalMs = ratePerSecond === undefined ? undefined : 1_000 / ratePerSecond;
  /** Connections without a request in flight, in a ring, so that each gets its turn. */
  readonly #idle: ClientConnection[] = [];
  #idleAt = 0;
  #idleCount = 0;
  #startMs = 0;
  #steadyMs = 0;
  #endMs = 0;
  #isSteady = false;
  #sent = 0;
  #answered = 0;
  /** Nanoseconds from the time a request was due. */
  readonly #latency = createHistogram();
  readonly #errors = { status: 0, closed: 0, unanswered: 0 };

  async open(): Promise<void> {
    const secureContext = createSecureContext({ ca: readFileSync(options.certFile) });
    const addresses = urls.map((url) => new URL(url));
    let opened = 0;
    const openOne = async (): Promise<void> => {
      const { hostname: host, port } = addresses[opened % addresses.length] as URL;
      opened += 1;
      const socket = connect({ host, port: Number(port), secureContext });
      await once(socket, 'secureConnect');
      socket.setNoDelay(true);
      socket.on('error', () => {});
      socket.on('close', () => {
        this.#errors.closed += 1;
      });
      this.#setIdle(new ClientConnection(socket, (connection, status) => this.#take(connection, status)));
    };
    for (let left = connections; left > 0; left -= handshakesAtOnce) {
      await Promise.all(Array.from({ length: Math.min(left, handshakesAtOnce) }, openOne));
    }
  }

  /**
   * Runs without pause at a constant rate between the turns of the event loop: a timer would be up to a
   * millisecond late, unless it is told to pause. In a closed loop it is answers that bring the next requests, and the core is left to the server.
   */
  run(): Promise<void> {
    this.#startMs = performance.now();
    this.#steadyMs = this.#startMs + options.warmUpSeconds * 1_000;
    this.#endMs = this.#steadyMs + options.seconds * 1_000;
    return new Promise((resolve) => {
      const turn = (): void => {
        const nowMs = performance.now();
        if (nowMs >= this.#steadyMs && !this.#isSteady) {
          this.#isSteady = true;
          process.stderr.write(`steady ${this.#answered}\n`);
        }
        this.#sendDue(nowMs);
        const isOver = this.#isAllSent(nowMs) && this.#answered === this.#sent;
        if (isOver || nowMs > this.#endMs + drainMs || this.#errors.closed > 0) resolve();
        else if (turnMs !== undefined) setTimeout(turn, turnMs);
        else if (ratePerSecond === undefined) setTimeout(turn, closedLoopTurnMs);
        else setImmediate(turn);
      };
      turn();
    });
  }

  report(): GeneratorReport {
    const due = this.#intervalMs && (this.#endMs - this.#startMs) / this.#intervalMs;
    this.#errors.unanswered = Math.round(requestsCount ?? due ?? this.#sent) - this.#answered;
    return {
      requests: this.#answered,
      p50Microseconds: this.#latency.percentile(50) / 1_000,
      p99Microseconds: this.#latency.percentile(99) / 1_000,
      p999Microseconds: this.#latency.percentile(99.9) / 1_000,
      errors: this.#errors,
    };
  }

  /** Time at which the next request is due. */
  #dueMs(nowMs: number): number {
    return this.#intervalMs === undefined ? nowMs : this.#startMs + this.#sent * this.#intervalMs;
  }

  #isAllSent(nowMs: number): boolean {
    return this.#sent === requestsCount || this.#dueMs(nowMs) >= this.#endMs;
  }

  #setIdle(connection: ClientConnection): void {
    this.#idle[(this.#idleAt + this.#idleCount) % connections] = connection;
    this.#idleCount += 1;
  }

  #sendDue(nowMs: number): void {
    while (this.#idleCount > 0) {
      const dueMs = this.#dueMs(nowMs);
      if (dueMs > nowMs || this.#isAllSent(nowMs)) return;
      const connection = this.#idle[this.#idleAt] as ClientConnection;
      this.#idleAt = (this.#idleAt + 1) % connections;
      this.#idleCount -= 1;
      const request = this.#requests[this.#sent % this.#requests.length] as Prebuilt;
      this.#sent += 1;
      connection.send(bytesOf(request), dueMs);
    }
  }

  #take(connection: ClientConnection, status: number): void {
    const nowMs = performance.now();
    this.#answered += 1;
    if (!statuses.includes(status)) this.#errors.status += 1;
    if (connection.dueMs >= this.#steadyMs) this.#latency.record(nanoseconds(nowMs - connection.dueMs));
    this.#setIdle(connection);
    this.#sendDue(nowMs);
  }
}

function nanoseconds(ms: number): number {
  return Math.max(1, Math.round(ms * 1e6));
}

const loop = new Loop();
await loop.open();
await loop.run();
process.stderr.write('end\n');
process.stdout.write(`${JSON.stringify(loop.report())}\n`, () => process.exit());
