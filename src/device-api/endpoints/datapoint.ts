import { parseDatapoint } from '../../declarations/schemas/payload.ts';
import type { Endpoint } from '../server/endpoint.ts';
import { send } from './send.ts';

/** `POST /v1/datapoint/:schema_name`. */
export const sendDatapoint: Endpoint = {
  method: 'POST',
  path: '/v1/datapoint/:schema_name',
  takesBody: true,
  writes: true,
  handle: (request, context) =>
    send(request, 'datapoint', () => {
      const { body, parameter } = request.given;
      const datapoint = parseDatapoint(body);
      context.fleets.schema(request.fleetId, 'datapoint', parameter).check(datapoint, body.length);
      return body;
    }),
};
