import { requestText } from '../harness/devices/raw.ts';
import { enumBomb, patternBomb, typeBomb } from '../harness/features/bombs.ts';
import { type Attack, floodWith, overTcp, type Target } from './attacks.ts';

/** The most that a schema may have by default (schemaBytesMax), each of its properties with a pattern to compile. */
function largeSchema(): string {
  const properties: Record<string, object> = {};
  for (let index = 0; index < 750; index += 1) {
    properties[`p${index}`] = { type: 'string', pattern: '^[a-z]{1,9}(-[0-9]{1,9})?$', maxLength: 20 };
  }
  return JSON.stringify({ type: 'object', properties });
}

function asked(
  { token = '', fleetId = '' }: Target,
  method: string,
  path: string,
  body = '',
  type = 'application/json',
): string {
  const headers = {
    Authorization: `Bearer ${token}`,
    ...(body !== '' && { 'Content-Type': type, 'Content-Length': String(Buffer.byteLength(body)) }),
  };
  return requestText(method, `/admin/v1/fleets/${fleetId}${path}`, headers, body);
}

/** Attacks at the admin API with a token of one fleet: each asks again as soon as it is answered. */
export const tokenAttacks: readonly Attack[] = [
  {
    name: 'checks of large schemas, 60 connections',
    start: (server) => {
      const body = JSON.stringify({ kind: 'datapoint', schema: largeSchema() });
      return overTcp(server.adminPort, 60, floodWith(asked(server, 'POST', '/schemas:check', body)));
    },
  },
  {
    name: 'checks of a type that ends its compiler, 30 connections',
    start: (server) => {
      const body = JSON.stringify({ source: typeBomb });
      return overTcp(server.adminPort, 30, floodWith(asked(server, 'POST', '/actions:check', body)));
    },
  },
  {
    name: 'deployments of an enum that ends its compiler, 30 connections',
    start: (server) => {
      const body = JSON.stringify({ source: enumBomb, on: [{ kind: 'message', schema: 'none' }] });
      const put = asked(server, 'PUT', '/actions/made', body);
      return overTcp(server.adminPort, 30, floodWith(put));
    },
  },
  {
    name: 'tests that look up devices without end, 20 connections',
    start: (server, device) => {
      const lookups = `Array.from({ length: 32 }, () => fleet.device('${device.deviceId}'))`;
      const draft = {
        source: `export default async (record, fleet) => { for (;;) await Promise.all(${lookups}); };`,
        language: 'javascript',
        on: [{ kind: 'message', schema: 'none' }],
      };
      const body = JSON.stringify({ record: { device: device.deviceId, payload: {} }, draft });
      return overTcp(server.adminPort, 20, floodWith(asked(server, 'POST', '/actions/made/test', body)));
    },
  },
  {
    name: 'a pattern of 400,000 states, 30 connections',
    start: (server) => {
      const put = asked(server, 'PUT', '/schemas/datapoint/costly', JSON.stringify(patternBomb));
      return overTcp(server.adminPort, 30, floodWith(put));
    },
  },
  {
    name: 'lists of 1,000 devices, 400 connections',
    start: (server) => overTcp(server.adminPort, 400, floodWith(asked(server, 'GET', '/devices?limit=1000'))),
  },
  {
    name: 'lists without a match, 24 connections',
    start: (server) =>
      overTcp(server.adminPort, 24, floodWith(asked(server, 'GET', '/devices?limit=1000&tag=made&tag=none'))),
  },
  {
    name: 'imports of 1 MB of bad lines, 16 connections',
    start: (server) => {
      const body = `name\n${'a,b\n'.repeat(250_000)}`;
      const request = asked(server, 'POST', '/devices:import', body, 'text/csv');
      return overTcp(server.adminPort, 16, (socket) => socket.resume().write(request));
    },
  },
  {
    name: 'imports of 16 MB of empty lines, 16 connections',
    start: (server) => {
      const body = '\n'.repeat(16_777_216);
      const request = asked(server, 'POST', '/devices:import', body, 'application/x-ndjson');
      return overTcp(server.adminPort, 16, (socket) => socket.resume().write(request));
    },
  },
  {
    name: 'imports of 2,000 devices, 8 connections',
    start: (server) =>
      overTcp(server.adminPort, 8, floodWith(asked(server, 'POST', '/devices:import', '{"count":2000}'))),
  },
  {
    name: 'devices, one at a time, 900 connections',
    start: (server, device) =>
      overTcp(server.adminPort, 900, floodWith(asked(server, 'GET', `/devices/${device.deviceId}`))),
  },
  {
    name: 'openapi.json without a token, 300 connections',
    start: ({ adminPort }) => overTcp(adminPort, 300, floodWith(requestText('GET', '/openapi.json', {}))),
  },
  {
    name: 'no token, 900 connections',
    start: ({ adminPort }) => overTcp(adminPort, 900, floodWith(requestText('GET', '/admin/v1/fleets', {}))),
  },
];
