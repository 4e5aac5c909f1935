import { emptyPayload, isEmpty, parseMessage } from '../../declarations/schemas/payload.ts';
import type { Endpoint } from '../server/endpoint.ts';
import { send } from './send.ts';

/** `POST /v1/msg/:schema_name`. An empty message needs its schema to exist, not to match (section 2). */
export const sendMessage: Endpoint = {
  method: 'POST',
  path: '/v1/msg/:schema_name',
  takesBody: true,
  writes: true,
  handle: (request, context) =>
    send(request, 'message', () => {
      const { body, parameter } = request.given;
      const message = parseMessage(body);
      const schema = context.fleets.schema(request.fleetId, 'message', parameter);
      if (message === undefined) return emptyPayload;
      if (!isEmpty(message)) schema.check(message, body.length);
      return body;
    }),
};
