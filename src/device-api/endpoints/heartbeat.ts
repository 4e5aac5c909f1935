import type { Endpoint } from '../server/endpoint.ts';
import { heartbeat } from '../server/reply.ts';

/** `POST /v1/heartbeat`. Seeing the device is its whole effect, and that is noted for every request. */
export const heartbeatEndpoint: Endpoint = {
  method: 'POST',
  path: '/v1/heartbeat',
  handle({ known }) {
    const size = known.mailboxSize();
    return typeof size === 'number' ? heartbeat(size > 0) : size.then((later) => heartbeat(later > 0));
  },
};
