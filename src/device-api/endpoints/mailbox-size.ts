import type { Endpoint } from '../server/endpoint.ts';
import { createReply, type Reply } from '../server/reply.ts';

const reply = (size: number): Reply =>
  createReply(200, `{"size":${size}}`, [['X-Mailbox-Size', String(size)]]);

/** `GET /v1/mailbox/size`. */
export const mailboxSize: Endpoint = {
  method: 'GET',
  path: '/v1/mailbox/size',
  handle({ known }) {
    const size = known.mailboxSize();
    return typeof size === 'number' ? reply(size) : size.then(reply);
  },
};
