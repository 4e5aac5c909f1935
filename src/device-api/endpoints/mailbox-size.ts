import type { Endpoint } from '../server/endpoint.ts';
import { createReply, heartbeat, type Reply } from '../server/reply.ts';

/** `POST /v1/heartbeat`: only updates the last-seen time, as every request does. */
export const heartbeatEndpoint: Endpoint = {
  method: 'POST',
  path: '/v1/heartbeat',
  handle({ cached }) {
    const size = cached.mailboxSize();
    return typeof size === 'number' ? heartbeat(size > 0) : size.then((later) => heartbeat(later > 0));
  },
};

const reply = (size: number): Reply =>
  createReply(200, `{"size":${size}}`, [['X-Mailbox-Size', String(size)]]);

/** `GET /v1/mailbox/size`. */
export const mailboxSize: Endpoint = {
  method: 'GET',
  path: '/v1/mailbox/size',
  handle({ cached }) {
    const size = cached.mailboxSize();
    return typeof size === 'number' ? reply(size) : size.then(reply);
  },
};
