/** Where devices find a server, as it says itself. */

import { request } from 'node:http';
import { expect, it } from 'vitest';
import { TestServer } from '../../harness/server/server.ts';

interface Endpoint {
  url: string;
  ca_file: string | null;
}

/** Asks by another name than the address, as a tunnel does. */
function askAs(server: TestServer, host: string): Promise<Endpoint> {
  return new Promise((resolve, reject) => {
    const headers = { host, authorization: `Bearer ${server.token}` };
    request(`${server.report.admin_url}/admin/v1/device-endpoint`, { headers }, (answer) => {
      let text = '';
      answer.on('data', (part) => {
        text += part;
      });
      answer.on('end', () => resolve(JSON.parse(text)));
    })
      .on('error', reject)
      .end();
  });
}

it('a server says its address of devices, with the port that it took, to whoever has a token', async () => {
  const server = await TestServer.shared();
  const { body: token } = await server.admin<{ token: string }>('POST', '/tokens', {
    name: 'of mail',
    scopes: ['mail'],
  });
  const answer = await fetch(`${server.report.admin_url}/admin/v1/device-endpoint`, {
    headers: { authorization: `Bearer ${token.token}` },
  });
  expect(await answer.json()).toEqual({ url: server.url, ca_file: server.report.cert_file });
  // Whatever name it was asked by: it listens on that one.
  expect((await askAs(server, 'localhost:1234')).url).toBe(server.url);
});

it('on all addresses it is the name that was asked for, if the certificate has it', async () => {
  await using server = await TestServer.start({ listen: '0.0.0.0:0' });
  const { port } = new URL(server.url);
  expect(await askAs(server, '127.0.0.1:8444')).toEqual({
    url: `https://127.0.0.1:${port}`,
    ca_file: server.report.cert_file,
  });
  expect((await askAs(server, 'localhost')).url).toBe(`https://localhost:${port}`);
  expect((await askAs(server, '127.9.9.9')).url).toBe(server.url);
});

it('behind something else it is publicUrl, whose certificate is not the own', async () => {
  await using server = await TestServer.start({ publicUrl: 'https://devices.example:8883' });
  expect(await askAs(server, 'localhost')).toEqual({ url: 'https://devices.example:8883', ca_file: null });
});
