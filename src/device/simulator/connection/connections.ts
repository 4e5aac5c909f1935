import { connect, createSecureContext, type SecureContext, type TLSSocket } from 'node:tls';
import { ClientConnection } from './client-connection.ts';
import { EventStreamReader } from './event-stream-reader.ts';

/** A server, as devices reach it. */
export interface NodeAddress {
  host: string;
  port: number;
  /** Certificates to trust, PEM: each server may have one of its own under the same name. */
  ca: string;
}

/** How a request goes out. */
export type ConnectionUse = 'shared' | 'own' | 'each';

/** One request with what becomes of it: exactly one of the two is called, once. */
export interface RequestInFlight {
  device: number;
  request: string;
  /** True if the connection is dropped when half of the request is written. */
  isCut: boolean;
  onSent(): void;
  onAnswer(status: number, text: string): void;
  /** Without an answer; `isOurs` if this side has dropped the connection. */
  onFailure(isOurs: boolean): void;
}

export interface DeviceStreamHandlers {
  onEvents(events: string): void;
  /** `status` is there if it was refused. */
  onClosed(isOurs: boolean, status?: number): void;
}

export interface ConnectionLimits {
  sharedMax: number;
  /** Requests that wait for a shared connection. */
  waitingMax: number;
}

/** The server ends a connection that is idle for about 9.4 s, and says so by `Keep-Alive: timeout=8` (D22). */
const idleMsMax = 7_000;
const answerMsMax = 30_000;
/** A node that refuses connections is left alone for as long, if there is another. */
const downMs = 500;
/** The server says something every 30 s (D20). */
const silenceMsMax = 70_000;
/**
 * Handshakes under way at once: each takes milliseconds of both ends, and with all of a storm's at once none would end
 * in time. The others wait, and what they carry is timed from when it was due.
 */
const handshakesMax = 64;

interface Link {
  /** Undefined until its handshake begins. */
  socket: TLSSocket | undefined;
  connection: ClientConnection | undefined;
  use: ConnectionUse;
  /** Whose it is; -1 for a shared one. */
  device: number;
  exchange: RequestInFlight | undefined;
  sinceMs: number;
}

interface Stream {
  socket: TLSSocket | undefined;
  handlers: DeviceStreamHandlers;
  heardMs: number;
}

/** All connections of a process: those that devices share, those of one device, and event streams. */
export class Connections {
  readonly #nodes: readonly NodeAddress[];
  readonly #secureContexts: readonly SecureContext[];
  readonly #limits: ConnectionLimits;
  readonly #links = new Set<Link>();
  readonly #own = new Map<number, Link>();
  readonly #streams = new Map<number, Stream>();
  readonly #idle: Link[] = [];
  #waiting: RequestInFlight[] = [];
  #waitingAt = 0;
  #sharedCount = 0;
  readonly #downUntilMs: number[];
  #handshakes = 0;
  #toOpen: (() => TLSSocket | undefined)[] = [];
  #toOpenAt = 0;
  #turn = 0;

  constructor(nodes: readonly NodeAddress[], limits: ConnectionLimits) {
    this.#nodes = nodes;
    this.#secureContexts = nodes.map(({ ca }) => createSecureContext({ ca }));
    this.#limits = limits;
    this.#downUntilMs = nodes.map(() => 0);
  }

  get open(): number {
    return this.#links.size;
  }

  get streams(): number {
    return this.#streams.size;
  }

  /** Requests that wait for a shared connection. */
  get waiting(): number {
    return this.#waiting.length - this.#waitingAt;
  }

  /** Sends a request of a device; false, and nothing is called, if too many wait already. */
  send(use: ConnectionUse, exchange: RequestInFlight): boolean {
    if (use === 'shared') return this.#sendShared(exchange);
    const own = use === 'own' ? this.#own.get(exchange.device) : undefined;
    if (own?.connection !== undefined && own.exchange === undefined) this.#write(own, exchange);
    else this.#open(use, exchange);
    return true;
  }

  /** Opens the event stream of a device, which has none. */
  stream(device: number, request: string, handlers: DeviceStreamHandlers): void {
    const stream: Stream = { socket: undefined, handlers, heardMs: performance.now() };
    this.#streams.set(device, stream);
    this.#whenThereIsRoom(() => {
      if (this.#streams.get(device) !== stream) return undefined;
      stream.socket = this.#openStream(device, stream, request);
      return stream.socket;
    });
  }

  hasStream(device: number): boolean {
    return this.#streams.has(device);
  }

  /** Drops the connection and the stream of a device. */
  dropDevice(device: number): void {
    const link = this.#own.get(device);
    if (link !== undefined) this.#drop(link);
    const stream = this.#streams.get(device);
    this.#streams.delete(device);
    stream?.socket?.destroy();
  }

  dropAll(): void {
    for (const link of [...this.#links]) this.#drop(link);
    for (const device of [...this.#streams.keys()]) this.dropDevice(device);
  }

  /** Retires idle connections before the server does, and gives up on answers that do not come. */
  sweep(): void {
    const nowMs = performance.now();
    for (const link of this.#links) {
      const isIdle = link.exchange === undefined && link.connection !== undefined;
      if (isIdle && nowMs - link.sinceMs > idleMsMax) this.#drop(link);
      else if (!isIdle && nowMs - link.sinceMs > answerMsMax) link.socket?.destroy();
    }
    for (const { socket, heardMs } of this.#streams.values()) {
      if (nowMs - heardMs > silenceMsMax) socket?.destroy();
    }
  }

  #openStream(device: number, stream: Stream, request: string): TLSSocket {
    const reader = new EventStreamReader();
    const socket = this.#connect(() => socket.write(request, 'latin1'));
    stream.heardMs = performance.now();
    let status = 0;
    socket.setEncoding('latin1').on('data', (text: string) => {
      stream.heardMs = performance.now();
      if (status === 0) status = Number(text.slice('HTTP/1.1 '.length, 'HTTP/1.1 200'.length));
      const events = reader.take(text);
      if (status !== 200) socket.destroy();
      else if (events !== '') stream.handlers.onEvents(events);
    });
    socket.once('close', () => {
      const isOurs = this.#streams.get(device) !== stream;
      if (!isOurs) this.#streams.delete(device);
      stream.handlers.onClosed(isOurs, status === 0 || status === 200 ? undefined : status);
    });
    return socket;
  }

  #sendShared(exchange: RequestInFlight): boolean {
    for (let link = this.#idle.pop(); link !== undefined; link = this.#idle.pop()) {
      if (!this.#links.has(link)) continue;
      this.#write(link, exchange);
      return true;
    }
    if (this.#sharedCount < this.#limits.sharedMax) {
      this.#open('shared', exchange);
      return true;
    }
    if (this.waiting >= this.#limits.waitingMax) return false;
    this.#waiting.push(exchange);
    return true;
  }

  #open(use: ConnectionUse, exchange: RequestInFlight): void {
    const device = use === 'shared' ? -1 : exchange.device;
    const sinceMs = performance.now();
    const link: Link = { socket: undefined, connection: undefined, use, device, exchange, sinceMs };
    this.#links.add(link);
    if (use === 'shared') this.#sharedCount += 1;
    if (use === 'own') this.#own.set(device, link);
    this.#whenThereIsRoom(() => {
      if (!this.#links.has(link)) return undefined;
      const socket = this.#connect(() => {
        link.connection = new ClientConnection(socket, (_, status, text) =>
          this.#onAnswer(link, status, text),
        );
        if (link.exchange !== undefined) this.#write(link, link.exchange);
      });
      link.socket = socket;
      link.sinceMs = performance.now();
      socket.once('close', () => this.#onClose(link, false));
      return socket;
    });
  }

  /** Opens something once fewer handshakes are under way; nothing, if it is not wanted any more by then. */
  #whenThereIsRoom(open: () => TLSSocket | undefined): void {
    this.#toOpen.push(open);
    this.#openNext();
  }

  #openNext(): void {
    while (this.#handshakes < handshakesMax && this.#toOpenAt < this.#toOpen.length) {
      const socket = this.#toOpen[this.#toOpenAt]?.();
      this.#toOpenAt += 1;
      if (socket === undefined) continue;
      this.#handshakes += 1;
      let isUnderWay = true;
      const ended = (): void => {
        if (!isUnderWay) return;
        isUnderWay = false;
        this.#handshakes -= 1;
        this.#openNext();
      };
      socket.once('secureConnect', ended);
      socket.once('close', ended);
    }
    if (this.#toOpenAt * 2 < this.#toOpen.length) return;
    this.#toOpen = this.#toOpen.slice(this.#toOpenAt);
    this.#toOpenAt = 0;
  }

  #connect(onReady: () => void): TLSSocket {
    const node = this.#pickNode();
    const { host, port } = this.#nodes[node] ?? { host: '', port: 0 };
    const socket = connect({ host, port, secureContext: this.#secureContexts[node] });
    socket.setNoDelay(true);
    socket.once('secureConnect', onReady);
    socket.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED') this.#downUntilMs[node] = performance.now() + downMs;
    });
    socket.on('error', () => {});
    return socket;
  }

  /** The next one that does not refuse connections, or else the next. */
  #pickNode(): number {
    const nowMs = performance.now();
    for (let tried = 0; tried < this.#nodes.length; tried += 1) {
      this.#turn = (this.#turn + 1) % this.#nodes.length;
      if ((this.#downUntilMs[this.#turn] ?? 0) < nowMs) return this.#turn;
    }
    return this.#turn;
  }

  #write(link: Link, exchange: RequestInFlight): void {
    link.exchange = exchange;
    link.sinceMs = performance.now();
    exchange.onSent();
    if (!exchange.isCut) {
      link.connection?.send(exchange.request, link.sinceMs);
      return;
    }
    const { request } = exchange;
    link.socket?.write(request.slice(0, request.length / 2), () => this.#drop(link));
  }

  #onAnswer(link: Link, status: number, text: string): void {
    const { exchange } = link;
    link.exchange = undefined;
    link.sinceMs = performance.now();
    if (link.use === 'each') this.#drop(link);
    else if (link.use === 'shared') this.#reuse(link);
    exchange?.onAnswer(status, text);
  }

  #reuse(link: Link): void {
    const next = this.#waiting[this.#waitingAt];
    if (next === undefined) {
      this.#idle.push(link);
      return;
    }
    this.#waitingAt += 1;
    if (this.#waitingAt > 1_024 && this.#waitingAt * 2 > this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#waitingAt);
      this.#waitingAt = 0;
    }
    this.#write(link, next);
  }

  #drop(link: Link): void {
    link.socket?.destroy();
    this.#onClose(link, true);
  }

  #onClose(link: Link, isOurs: boolean): void {
    if (!this.#links.delete(link)) return;
    if (link.use === 'shared') {
      this.#sharedCount -= 1;
      this.#openForWaiting();
    }
    if (this.#own.get(link.device) === link) this.#own.delete(link.device);
    const { exchange } = link;
    link.exchange = undefined;
    exchange?.onFailure(isOurs);
  }

  /** Opens a shared connection for a waiting device: it would wait for ever if all of them were gone. */
  #openForWaiting(): void {
    if (this.waiting === 0 || this.#sharedCount >= this.#limits.sharedMax) return;
    const next = this.#waiting[this.#waitingAt];
    this.#waitingAt += 1;
    if (next !== undefined) this.#open('shared', next);
  }
}
