import { headerOf } from '../connection/client-connection.ts';
import type { Connections } from '../connection/connections.ts';
import { chance } from '../payload/noise.ts';
import { type DeviceStates, isBackingOff, isBusy, isRotating, isUp, retryTimer } from './device-states.ts';
import type { Ledger } from './ledger.ts';
import type { DevicesTask, Route, SimulatedCounts } from './orders.ts';
import type { Plan } from './plan.ts';
import type { Samples } from './samples.ts';
import { simulatedDeviceId, simulatedSecret } from './simulated-identity.ts';

/** A request of a device, with what becomes of it. */
export interface SimulatedRequest {
  route: Route;
  method: 'GET' | 'HEAD' | 'POST' | 'PUT';
  path: string;
  /** Lines with their ends. */
  headers?: string;
  body?: string;
  dueMs: number;
  /** Instead of the device's own. */
  secret?: string;
  isCut?: boolean;
  /** True if a 401 or 429 is the answer it deserves. */
  isSpoilt?: boolean;
  /** Any answer but those after which it is to be tried again. */
  onAnswer(status: number, text: string): void;
  /** It is to be tried again; `isDoubtful` if nobody knows whether it was done. */
  onLater(isDoubtful: boolean): void;
}

const backOffMsMax = 60_000;
const complaintsMax = 20;
/** Beyond, a request counts as late because of this process. */
const lateMs = 50;

/** State that the parts of a process of devices share. */
export class World {
  readonly task: DevicesTask;
  readonly plans: readonly Plan[];
  readonly states: DeviceStates;
  readonly connections: Connections;
  readonly samples: Samples;
  readonly ledger: Ledger;
  readonly counts: SimulatedCounts;
  readonly complaints: string[] = [];
  /** Secrets that an operator has given out since. */
  readonly secrets = new Map<number, string>();
  /** Called when a device may do something again. */
  onIdle: (device: number) => void = () => {};
  readonly #startMs = performance.now();
  readonly #host: string;

  constructor(
    task: DevicesTask,
    plans: readonly Plan[],
    parts: Pick<World, 'states' | 'connections' | 'samples' | 'ledger' | 'counts'>,
  ) {
    this.task = task;
    this.plans = plans;
    this.states = parts.states;
    this.connections = parts.connections;
    this.samples = parts.samples;
    this.ledger = parts.ledger;
    this.counts = parts.counts;
    const [{ host, port } = { host: '', port: 0 }] = task.nodes;
    this.#host = `${host}:${port}`;
  }

  /** Milliseconds since the begin. */
  nowMs(): number {
    return performance.now() - this.#startMs;
  }

  /** Its number in the whole fleet. */
  numberOf(device: number): number {
    return device * this.task.processes + this.task.process;
  }

  planOf(device: number): Plan {
    return this.plans[this.states.profile[device] ?? 0] as Plan;
  }

  /** Draws a number from 0 up to 1 for a device. */
  draw(device: number): number {
    const { draws } = this.states;
    draws[device] = (draws[device] ?? 0) + 1;
    return chance(this.task.scenario.seed, this.numberOf(device), draws[device] ?? 0);
  }

  /** Says in a report what should not have happened. */
  complain(text: string): void {
    this.counts.errors += 1;
    if (this.complaints.length < complaintsMax) this.complaints.push(text);
  }

  /** Counts what this process was behind. */
  noteLag(dueMs: number): void {
    const lagMs = this.nowMs() - dueMs;
    if (lagMs > lateMs) this.counts.late += 1;
  }

  /** Sends a request of a device, which has none in flight. */
  request(device: number, request: SimulatedRequest): void {
    const { states, counts, connections } = this;
    const plan = this.planOf(device);
    const text = this.#textOf(device, request);
    states.set(device, isBusy, true);
    counts.due += 1;
    let sentMs = 0;
    const exchange = {
      device,
      request: text,
      isCut: request.isCut ?? false,
      onSent: () => {
        sentMs = this.nowMs();
      },
      onAnswer: (status: number, answer: string) => {
        states.set(device, isBusy, false);
        const nowMs = this.nowMs();
        this.samples.add(request.route, nowMs - request.dueMs - plan.latencyMs, nowMs - sentMs);
        this.#take(device, request, status, answer);
        this.onIdle(device);
      },
      onFailure: (isOurs: boolean) => {
        states.set(device, isBusy, false);
        if (isOurs) counts.cut += 1;
        else counts.failures += 1;
        this.backOff(device);
        request.onLater(true);
        this.onIdle(device);
      },
    };
    const send = (): void => {
      if (!states.has(device, isUp)) exchange.onFailure(true);
      else if (!connections.send(plan.use, exchange)) {
        counts.dropped += 1;
        exchange.onFailure(true);
      }
    };
    if (plan.latencyMs > 0) setTimeout(send, plan.latencyMs);
    else send();
  }

  /** Text of a request of a device. */
  textOf(device: number, method: string, path: string, headers = '', body?: string, secret?: string): string {
    const number = this.numberOf(device);
    const own = secret ?? this.secrets.get(number) ?? simulatedSecret(this.task.salt, number);
    const content =
      body === undefined
        ? ''
        : `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`;
    return (
      `${method} ${path} HTTP/1.1\r\nHost: ${this.#host}\r\nX-Fleet-ID: ${this.task.fleetId}\r\n` +
      `X-Device-ID: ${simulatedDeviceId(number)}\r\nX-Device-Secret: ${own}\r\n${headers}${content}\r\n${body ?? ''}`
    );
  }

  /** Waits with full jitter, longer each time; or as long as the server says. */
  backOff(device: number, waitMs?: number): void {
    const { states } = this;
    const attempts = Math.min(10, (states.attempts[device] ?? 0) + 1);
    states.attempts[device] = attempts;
    const capMs = Math.min(backOffMsMax, 1_000 * 2 ** attempts);
    const plan = this.planOf(device);
    const ownMs = plan.isImpatient ? 1_000 : this.draw(device) * capMs;
    states.set(device, isBackingOff, true);
    states.setTimer(device, retryTimer, this.nowMs() + (waitMs ?? ownMs));
  }

  #textOf(device: number, { method, path, headers, body, secret }: SimulatedRequest): string {
    return this.textOf(device, method, path, headers, body, secret);
  }

  #take(device: number, request: SimulatedRequest, status: number, text: string): void {
    const { states, counts } = this;
    const isRefused = status === 429 || status === 503;
    if (request.isSpoilt !== true && (isRefused || (status === 401 && states.has(device, isRotating)))) {
      counts.refused += 1;
      const seconds = Number(headerOf(text, 'retry-after') || '1');
      this.backOff(device, 1_000 * (seconds + this.draw(device)));
      request.onLater(false);
    } else if (status === 408 || status === 425 || status >= 500) {
      this.complain(`${request.method} ${request.path} was answered ${status}: ${shownBody(text)}`);
      this.backOff(device);
      request.onLater(true);
    } else {
      states.attempts[device] = 0;
      request.onAnswer(status, text);
    }
  }
}

const bodyShownMax = 200;

/** The body of an answer, as much as a sentence may show. */
export function shownBody(text: string): string {
  const headEnd = text.indexOf('\r\n\r\n');
  return text.slice(headEnd < 0 ? 0 : headEnd + 4).slice(0, bodyShownMax);
}
