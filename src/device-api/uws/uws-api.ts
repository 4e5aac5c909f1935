/**
 * The part of uWebSockets.js that is used here, all of which v20.51.0 and v20.69.0 have. Written down because the
 * packages that carry binaries carry no typings.
 */
export type Bytes = string | ArrayBuffer | ArrayBufferView;

export interface HttpRequest {
  getMethod(): string;
  getQuery(): string;
  getParameter(index: number): string | undefined;
  forEach(visit: (name: string, value: string) => void): void;
}

export interface HttpResponse {
  writeStatus(status: Bytes): HttpResponse;
  writeHeader(name: Bytes, value: Bytes): HttpResponse;
  /** False once the kernel's buffers are full. */
  write(chunk: Bytes): boolean;
  tryEnd(chunk: Bytes, totalBytes: number): [isOk: boolean, isDone: boolean];
  end(body?: Bytes, closeConnection?: boolean): HttpResponse;
  /** Without a length of its own: only that both libraries have. */
  endWithoutBody(): HttpResponse;
  close(): HttpResponse;
  cork(run: () => void): HttpResponse;
  pause(): void;
  resume(): void;
  getRemoteAddress(): ArrayBuffer;
  onAborted(handler: () => void): HttpResponse;
  /** The chunk is detached when the handler returns. */
  onData(handler: (chunk: ArrayBuffer, isLast: boolean) => void): HttpResponse;
  onWritable(handler: (offset: number) => boolean): HttpResponse;
}

/** Opaque and sent between threads as it is. */
export interface AppDescriptor {
  readonly appDescriptor: unique symbol;
}

export interface ListenSocket {
  readonly listenSocket: unique symbol;
}

type Handler = (response: HttpResponse, request: HttpRequest) => void;
type OnListen = (socket: ListenSocket | false) => void;

export interface App {
  get(pattern: string, handler: Handler): App;
  post(pattern: string, handler: Handler): App;
  put(pattern: string, handler: Handler): App;
  head(pattern: string, handler: Handler): App;
  any(pattern: string, handler: Handler): App;
  /** 1 for a connection that was opened, -1 for one that was closed. */
  filter(handler: (response: HttpResponse, count: number) => void): App;
  listen(host: string, port: number, onListen: OnListen): App;
  listen(host: string, port: number, options: number, onListen: OnListen): App;
  close(): App;
  getDescriptor(): AppDescriptor;
  addChildAppDescriptor(descriptor: AppDescriptor): void;
  removeChildAppDescriptor(descriptor: AppDescriptor): void;
}

export interface Uws {
  SSLApp(options: { cert_file_name: string; key_file_name: string; ssl_ciphers: string }): App;
  us_listen_socket_close(socket: ListenSocket): void;
  us_socket_local_port(socket: ListenSocket): number;
  /** `silent` leaves the library's name out of every response. */
  _cfg(option: string): void;
  LIBUS_LISTEN_EXCLUSIVE_PORT: number;
}
