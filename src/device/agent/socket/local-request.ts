import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { payloadBytesMax } from '../../client/answer.ts';
import type { DeviceIdentity } from '../../client/link.ts';
import { AgentError } from '../agent-error.ts';

/** Reads the body of a request on the socket: by its Content-Length, at most what the server takes. */
export async function readLocalBody(request: IncomingMessage): Promise<Buffer> {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = request.headers;
  if (encoding !== undefined) throw new AgentError(400, 'bad_request', 'A body needs a Content-Length.');
  if (Number(length) > payloadBytesMax) {
    throw new AgentError(403, 'request_too_large', `A body has at most ${payloadBytesMax} bytes.`);
  }
  const parts: Buffer[] = [];
  for await (const part of request as AsyncIterable<Buffer>) parts.push(part);
  return Buffer.concat(parts);
}

/** Refuses a request that names another device, or none where one is needed. */
export function checkIdentity(
  { headers }: IncomingMessage,
  { fleet, id }: DeviceIdentity,
  isNeeded: boolean,
): void {
  const { 'x-fleet-id': fleetGiven, 'x-device-id': idGiven } = headers;
  if (isNeeded && (!fleetGiven || !idGiven)) {
    throw new AgentError(400, 'missing_credentials', 'X-Fleet-ID and X-Device-ID are needed.');
  }
  if ((fleetGiven !== undefined && fleetGiven !== fleet) || (idGiven !== undefined && idGiven !== id)) {
    throw new AgentError(401, 'unauthorized', 'This agent is that of another device.');
  }
}

/** Answers a request on the socket, whose connection ends with it. */
export function answerLocally(
  response: ServerResponse,
  status: number,
  headers: OutgoingHttpHeaders,
  body: Buffer | string,
): void {
  const bytes = Buffer.byteLength(body);
  const all = {
    'Content-Type': 'application/json',
    ...headers,
    'Content-Length': bytes,
    Connection: 'close',
  };
  response.writeHead(status, all).end(body);
}

/** JSON body for an error. */
export function errorBody({ atom, message }: AgentError): string {
  return JSON.stringify({ error: atom, msg: message });
}
