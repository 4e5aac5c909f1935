import type { DeviceKey } from '../../core/identity.ts';
import type { Awaitable, Shard } from '../../domain/shard.ts';
import type { CachedDevice } from '../auth/cached-device.ts';
import type { HttpContext } from './context.ts';
import type { Reply } from './reply.ts';
import type { RequestHeaders } from './request-headers.ts';

/** What is read off a request before its handler returns. */
export interface RequestInput {
  /** The path's parameter, or ''. */
  parameter: string;
  /** Behind the question mark, as it was sent. */
  query: string;
  headers: RequestHeaders;
  /** Complete and within its limit; empty where there is none. Gone after the handler's first `await`. */
  body: Buffer;
}

/** An authenticated request as an endpoint sees it. */
export class DeviceRequest {
  readonly known: CachedDevice;
  readonly given: RequestInput;

  constructor(known: CachedDevice, given: RequestInput) {
    this.known = known;
    this.given = given;
  }

  get device(): DeviceKey {
    return this.known.device;
  }

  get fleetId(): string {
    return this.known.fleetId;
  }

  get shard(): Shard {
    return this.known.shard;
  }
}

/** One route of section 4. A handler returns its reply or throws an ApiError. */
export interface Endpoint {
  method: 'GET' | 'HEAD' | 'POST' | 'PUT';
  path: string;
  /** Reads what stands behind the question mark; nobody else is given it. */
  takesQuery?: boolean;
  /** Takes JSON: the content type and the size are checked before the handler runs. */
  takesBody?: boolean;
  /** Changes the mailbox or the log: refused early while the shard's queue is full. */
  writes?: boolean;
  handle(request: DeviceRequest, context: HttpContext): Awaitable<Reply>;
}
