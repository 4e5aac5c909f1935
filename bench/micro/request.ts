import { RequestHeaders } from '../../src/device-api/server/request-headers.ts';
import type { HttpRequest } from '../../src/device-api/uws/uws.ts';
import { fleetId } from '../servers/devices.ts';
import { type Group, group, repeated } from './microbench.ts';
import { sampleDevice } from './samples.ts';

/** A request as the HTTP library has it for us once it has found the route: the headers, one call each. */
export function requestWith(headers: Record<string, string>): HttpRequest {
  const entries = Object.entries(headers);
  return {
    forEach: (take: (name: string, value: string) => void) => {
      for (const [name, value] of entries) take(name, value);
    },
  } as unknown as HttpRequest;
}

/** Our share of routing: one pass over the headers. From path to endpoint the library's own router goes. */
export async function request(): Promise<Group> {
  const { deviceId, secret } = sampleDevice();
  const datapoint = requestWith({
    host: '127.0.0.1:8443',
    'user-agent': 'device/1.0',
    'x-fleet-id': fleetId,
    'x-device-id': deviceId,
    'x-device-secret': secret,
    'content-type': 'application/json',
    'content-length': '105',
    accept: '*/*',
  });
  return group(repeated('headers of a request', () => new RequestHeaders(datapoint).bodyBytes));
}
