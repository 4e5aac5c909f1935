/**
 * Typings for the part of uWebSockets.js that is used here, which both v20.51.0 and v20.69.0 have. Written by hand
 * because the packages with the binaries have none.
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
  /** Declared without its length parameter, which only one of the two versions has. */
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

/** Opaque; can be sent between threads. */
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
  /** `count` is 1 for an opened connection, -1 for a closed one. */
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
  /** `silent` omits the library's name from every response. */
  _cfg(option: string): void;
  LIBUS_LISTEN_EXCLUSIVE_PORT: number;
}
