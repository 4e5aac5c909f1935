import type { Awaitable } from '../../core/async.ts';
import type { DeviceKey } from '../../core/identity.ts';
import type { Shard } from '../../domain/shard.ts';
import type { CachedDevice } from '../auth/cached-device.ts';
import type { HttpContext } from './context.ts';
import type { Exchange } from './exchange.ts';
import type { Reply } from './reply.ts';
import type { RequestHeaders } from './request-headers.ts';

/** A request's input, read before its handler returns. */
export interface RequestInput {
  /** The path's parameter, or ''. */
  parameter: string;
  /** The raw query string, without the question mark. */
  query: string;
  headers: RequestHeaders;
  /** Complete and within its limit; empty if there is none. Invalid after the handler's first `await`. */
  body: Buffer;
}

/** An authenticated request as an endpoint sees it. */
export class DeviceRequest {
  readonly cached: CachedDevice;
  readonly input: RequestInput;
  readonly exchange: Pick<Exchange, 'pause' | 'resume'>;

  constructor(cached: CachedDevice, input: RequestInput, exchange: Pick<Exchange, 'pause' | 'resume'>) {
    this.cached = cached;
    this.input = input;
    this.exchange = exchange;
  }

  get device(): DeviceKey {
    return this.cached.device;
  }

  get fleetId(): string {
    return this.cached.fleetId;
  }

  get shard(): Shard {
    return this.cached.shard;
  }
}

interface EndpointTraits {
  method: 'GET' | 'HEAD' | 'POST' | 'PUT';
  path: string;
  /** Reads the query string; other endpoints get ''. */
  takesQuery?: boolean;
  /** Takes JSON: the content type and the size are checked before the handler runs. */
  takesBody?: boolean;
  /** Largest body, where that is less than `bodyBytesMax`. */
  bodyBytesMax?: number;
  /** Changes the mailbox or the log, so it is refused early while the shard's queue is full. */
  writes?: boolean;
}

/** One route of section 4. A handler returns its reply or throws an ApiError. */
export interface Endpoint extends EndpointTraits {
  isOpen?: false;
  handle(request: DeviceRequest, context: HttpContext): Awaitable<Reply>;
}

/** A route for clients without credentials. The client's address can be read before the handler's first `await`. */
export interface OpenEndpoint extends EndpointTraits {
  isOpen: true;
  handle(input: RequestInput, client: { readonly address: string }, context: HttpContext): Awaitable<Reply>;
}
