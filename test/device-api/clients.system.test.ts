/** Sections 4 to 6 of the spec, by the HTTP clients that devices have. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { uuidv7 } from 'uuidv7';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createFleet, type TestDevice, type TestFleet } from '../harness/devices/device.ts';
import { TestServer } from '../harness/server/server.ts';
import { readRecords } from '../harness/storage/log.ts';

interface Step {
  method: string;
  path: string;
  headers: Record<string, string>;
  body?: string;
}

interface Answer {
  status: number;
  /** Names in lower case. */
  headers: Record<string, string>;
  body: string;
}

interface Session {
  url: string;
  certFile: string;
  steps: Step[];
}

type Client = (session: Session) => Promise<Answer[]>;

let server: TestServer;
let fleet: TestFleet;
/** One a client that had its session. */
const devices: TestDevice[] = [];
beforeAll(async () => {
  server = await TestServer.start();
  fleet = await createFleet(server);
});
afterAll(() => server[Symbol.asyncDispose]());

async function run(
  command: string,
  args: string[],
  input: string,
  environment: NodeJS.ProcessEnv = {},
): Promise<string> {
  const child = spawn(command, args, { env: { ...process.env, ...environment } });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  // One that wants no input may be gone before that has come; its status says whether something was wrong.
  child.stdin.on('error', () => {}).end(input);
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`${command} ended with ${code}: ${stderr}`);
  return stdout;
}

function curlArguments({ certFile }: Session, headers: Record<string, string>): string[] {
  return [
    '-sS',
    '--cacert',
    certFile,
    ...Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]),
  ];
}

const curl: Client = async (session) => {
  const answers: Answer[] = [];
  for (const { method, path, headers, body } of session.steps) {
    const output = await run(
      'curl',
      [
        ...curlArguments(session, headers),
        ...(method === 'HEAD' ? ['-I'] : ['-i', '-X', method]),
        ...(body === undefined ? [] : ['--data-binary', '@-']),
        session.url + path,
      ],
      body ?? '',
    );
    const headEnd = output.indexOf('\r\n\r\n');
    const [statusLine = '', ...lines] = output.slice(0, headEnd).split('\r\n');
    const pairs = lines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    });
    answers.push({
      status: Number(statusLine.split(' ')[1]),
      headers: Object.fromEntries(pairs),
      body: output.slice(headEnd + 4),
    });
  }
  return answers;
};

const nodeScript = `
import { text } from 'node:stream/consumers';
const { url, steps } = JSON.parse(await text(process.stdin));
const answers = [];
for (const { method, path, headers, body } of steps) {
  const response = await fetch(url + path, { method, headers, body });
  answers.push({ status: response.status, headers: Object.fromEntries(response.headers), body: await response.text() });
}
console.log(JSON.stringify(answers));
`;

/** Runs in a process of its own, since Node's fetch takes a certificate authority from the environment alone. */
const nodeFetch: Client = async (session) => {
  const environment = { NODE_EXTRA_CA_CERTS: session.certFile };
  const args = ['--input-type=module', '-e', nodeScript];
  return JSON.parse(await run(process.execPath, args, JSON.stringify(session), environment));
};

const pythonScript = `
import http.client, json, ssl, sys
from urllib.parse import urlsplit
session = json.load(sys.stdin)
context = ssl.create_default_context(cafile=session['certFile'])
connection = http.client.HTTPSConnection(urlsplit(session['url']).netloc, context=context, timeout=30)
answers = []
for step in session['steps']:
    body = step['body'].encode() if 'body' in step else None
    connection.request(step['method'], step['path'], body=body, headers=step['headers'])
    response = connection.getresponse()
    headers = {name.lower(): value for name, value in response.getheaders()}
    answers.append({'status': response.status, 'headers': headers, 'body': response.read().decode()})
print(json.dumps(answers))
`;

const python: Client = async (session) =>
  JSON.parse(await run('python3', ['-c', pythonScript], JSON.stringify(session)));

const datapoint = '{ "celsius": 21.50, "n": 9007199254740993 }';
const message = '{"door":"Tür","open":true}';
const mailPayload = '{"text":"\\u00e9é","n":1e400}';

/** Requests of a device in its first minute, and the answers that it must get. */
async function firstSession(client: Client): Promise<void> {
  const device = await fleet.createDevice();
  const { mailId } = await device.sendMail('greeting', mailPayload);
  const steps: Step[] = [];
  const expected: unknown[] = [];
  const step = (
    method: string,
    path: string,
    answer: [status: number, body: string, headers?: Record<string, string>],
    body?: string,
    headers: Record<string, string> = {},
  ): void => {
    const type: Record<string, string> = body === undefined ? {} : { 'Content-Type': 'application/json' };
    steps.push({
      method,
      path,
      headers: { ...device.credentials, ...type, ...headers },
      ...(body !== undefined && { body }),
    });
    expected.push({ status: answer[0], body: answer[1], headers: answer[2] ?? {} });
  };
  const ok = '{"ok":true}';
  const key = { 'Idempotency-Key': uuidv7() };
  const size = (mails: number): Record<string, string> => ({ 'x-mailbox-size': String(mails) });
  const head = { ...size(1), 'x-mail-id': mailId, 'x-mail-name': 'greeting' };

  step('GET', '/', [200, '{"fostrom":true,"endpoint":"device","latest_endpoint_version":1}']);
  step('POST', '/v1/heartbeat', [201, ok, { 'x-messages-available': 'true', 'cache-control': 'no-store' }]);
  step('POST', '/v1/datapoint/reading', [201, ok], datapoint);
  step('POST', '/v1/msg/note', [201, ok], message, key);
  step('POST', '/v1/msg/note', [201, ok, { 'idempotent-replayed': 'true' }], message, key);
  step('POST', '/v1/msg/note', [201, ok]);
  step('GET', '/v1/mailbox/size', [200, '{"size":1}']);
  step('HEAD', '/v1/mailbox/next', [200, '', head]);
  step('GET', '/v1/mailbox/next', [200, mailPayload, head]);
  step('PUT', `/v1/mailbox/requeue/${mailId}`, [200, ok, size(1)]);
  step('PUT', `/v1/mailbox/ack/${mailId}`, [200, ok, size(0)]);
  step('PUT', `/v1/mailbox/ack/${mailId}`, [200, ok, size(0)]);
  step('HEAD', '/v1/mailbox/next', [204, '', { ...size(0), 'x-mail-id': '', 'x-mail-name': '' }]);
  step('GET', '/v1/mailbox/next', [204, '', { ...size(0), 'x-mail-id': '', 'x-mail-name': '' }]);
  step('POST', '/v1/heartbeat', [201, ok, { 'x-messages-available': 'false' }]);
  const notFound = '{"error":"route_not_found","msg":"There is no such route."}';
  step('GET', '/v1/nowhere', [404, notFound, { 'content-type': 'application/json' }]);
  step(
    'POST',
    '/v1/datapoint/reading',
    [413, expect.stringContaining('"request_too_large"')],
    'x'.repeat(300_000),
  );
  step('GET', '/v1/mailbox/size', [200, '{"size":0}']);

  const answers = await client({ url: server.url, certFile: server.report.cert_file, steps });
  expect(answers).toMatchObject(expected);
  devices.push(device);
}

it('section 4, section 5: a first session with curl', () => firstSession(curl));

it('section 4, section 5: a first session with the fetch of Node', () => firstSession(nodeFetch));

it('section 4, section 5: a first session with http.client of Python, on one connection', () =>
  firstSession(python));

it('section 6: an event stream with curl', async () => {
  const device = await fleet.createDevice();
  const { mailId } = await device.sendMail('greeting');
  const session = { url: server.url, certFile: server.report.cert_file, steps: [] };
  const child = spawn('curl', [
    ...curlArguments(session, { ...device.credentials, Accept: 'text/event-stream' }),
    ...['-N', `${server.url}/v1/events`],
  ]);
  let stdout = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  await expect.poll(() => stdout).toContain('event: new_mail\n');
  expect(stdout).toMatch(
    /^retry: \d+\n\nevent: connected\ndata: \{.*\}\n\nid: \d+\nevent: new_mail\ndata: \{.*\}\n\n$/,
  );
  expect(stdout).toContain(mailId);
  child.kill();
  await once(child, 'close');
});

it('D11, D18: what the clients sent is stored byte for byte, and once', async () => {
  await server.stop();
  const records = await readRecords(server.report);
  for (const { deviceId } of devices) {
    const own = records.filter((record) => record.deviceId === deviceId);
    expect(own.map(({ kind, payload }) => [kind, payload])).toEqual([
      ['datapoint', datapoint],
      ['message', message],
      ['message', '{}'],
    ]);
  }
});
