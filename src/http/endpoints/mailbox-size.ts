import type { Endpoint } from '../endpoint.ts';
import type { Reply } from '../reply.ts';

const reply = (size: number): Reply => ({
  status: 200,
  body: `{"size":${size}}`,
  headers: [['X-Mailbox-Size', String(size)]],
});

/** `GET /v1/mailbox/size`. */
export const mailboxSize: Endpoint = {
  method: 'GET',
  path: '/v1/mailbox/size',
  handle({ device, shard }) {
    const size = shard.mailboxSize(device);
    return typeof size === 'number' ? reply(size) : size.then(reply);
  },
};
