import { deviceIdOf } from '../../core/identity.ts';
import type { Endpoint } from '../server/endpoint.ts';
import { createMailboxReply, createReply, type Reply, storedReply } from '../server/reply.ts';

/** `POST /v1/heartbeat`: only updates the last-seen time, as every request does. */
export const heartbeatEndpoint: Endpoint = {
  method: 'POST',
  path: '/v1/heartbeat',
  handle: () => storedReply,
};

const reply = (size: number): Reply => createMailboxReply(200, `{"size":${size}}`, size);

/** `GET /v1/mailbox/size`. */
export const mailboxSize: Endpoint = {
  method: 'GET',
  path: '/v1/mailbox/size',
  handle({ cached }) {
    const size = cached.mailboxSize();
    return typeof size === 'number' ? reply(size) : size.then(reply);
  },
};

/** `GET /v1` (D23). */
export const version: Endpoint = {
  method: 'GET',
  path: '/v1',
  handle: ({ device, fleetId }) =>
    createReply(
      200,
      JSON.stringify({
        fostrom: true,
        endpoint: 'device',
        endpoint_version: 1,
        device: { fleet_id: fleetId, device_id: deviceIdOf(device) },
      }),
    ),
};
