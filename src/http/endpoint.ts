import type { DeviceKey } from '../core/identity.ts';
import type { Awaitable, Shard } from '../shard/shard.ts';
import type { HttpContext } from './context.ts';
import type { Reply } from './reply.ts';

/** An authenticated request as an endpoint sees it: copied out of the library, complete, within its limits. */
export interface DeviceRequest {
  device: DeviceKey;
  fleetId: string;
  shard: Shard;
  /** The path's parameter, or ''. */
  parameter: string;
  /** Behind the question mark, as it was sent. */
  query: string;
  /** The one header that the endpoint asked for, or ''. */
  header: string;
  /** Empty where the endpoint takes none. */
  body: Buffer;
}

/** One route of section 4. A handler returns its reply or throws an ApiError. */
export interface Endpoint {
  method: 'GET' | 'HEAD' | 'POST' | 'PUT';
  path: string;
  /** Takes JSON: the content type and the size are checked before the handler runs. */
  takesBody?: boolean;
  /** Changes the mailbox or the log: refused early while the shard's queue is full. */
  writes?: boolean;
  header?: string;
  handle(request: DeviceRequest, context: HttpContext): Awaitable<Reply>;
}
