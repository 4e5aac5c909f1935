import { deviceIdOf } from '../../core/identity.ts';
import type { Endpoint } from '../server/endpoint.ts';
import { createReply } from '../server/reply.ts';

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
