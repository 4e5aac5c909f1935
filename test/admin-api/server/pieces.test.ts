/** Hostile trial of the admin port: bodies that come byte by byte and do not end, as fast as the server reads. */

import { once } from 'node:events';
import { beforeAll, expect, it } from 'vitest';
import { createFleet } from '../../harness/devices/device.ts';
import { RawConnection, requestText } from '../../harness/devices/raw.ts';
import { TestServer } from '../../harness/server/server.ts';

const tinyChunk = '1\r\na\r\n';
const largeChunk = `1000\r\n${'a'.repeat(4_096)}\r\n`;
const crowd = 8;

let server: TestServer;
let path: string;
let bearer: { Authorization: string };
beforeAll(async () => {
  server = await TestServer.shared();
  path = `/admin/v1/fleets/${(await createFleet(server)).fleetId}`;
  bearer = { Authorization: `Bearer ${server.token}` };
});

/** Sends the head and then the same chunk without end. Returns what was answered once the server has closed. */
async function flooded(head: string, chunk: string): Promise<string> {
  const connection = await RawConnection.openPlain(server.report.admin_url);
  const { socket } = connection;
  const flood = Buffer.from(chunk.repeat(200_000 / chunk.length));
  connection.write(head);
  const closed = connection.closed();
  while (!connection.isClosed) {
    // A write that is reset is one way to see the end.
    if (!socket.write(flood)) await Promise.race([once(socket, 'drain').catch(() => closed), closed]);
  }
  connection.destroy();
  return connection.text;
}

function head(type: string, to: string, token: Record<string, string>): string {
  return requestText('POST', to, { ...token, 'Content-Type': type, 'Transfer-Encoding': 'chunked' });
}

it.each([
  ['without a token', () => head('application/json', `${path}/devices`, {}), tinyChunk, 'HTTP/1.1 401'],
  ['of a document', () => head('application/json', `${path}/devices`, bearer), tinyChunk, ''],
  ['of an import', () => head('text/csv', `${path}/devices:import`, bearer), tinyChunk, ''],
  [
    'of one line of an import',
    () => head('application/x-ndjson', `${path}/devices:import`, bearer),
    largeChunk,
    '"error":"import_ended"',
  ],
])(
  'a body without end ends its connection, and others are answered: %s',
  async (_, ofHead, chunk, answer) => {
    let isFlooded = true;
    const floods = Promise.all(Array.from({ length: crowd }, () => flooded(ofHead(), chunk))).finally(() => {
      isFlooded = false;
    });
    while (isFlooded) expect((await fetch(`${server.report.admin_url}/readyz`)).status).toBe(200);
    // Who still sends may lose an answer to the reset that follows.
    for (const text of await floods) if (text !== '') expect(text).toContain(answer);
  },
);
