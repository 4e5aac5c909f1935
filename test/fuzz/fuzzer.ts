import fc from 'fast-check';
import { uuidv7 } from 'uuidv7';
import { clientHello, openTcp, openTls } from '../device-api/hostile/vanishing.ts';
import { createFleet, type TestDevice } from '../harness/devices/device.ts';
import { requestText } from '../harness/devices/raw.ts';
import { TestServer } from '../harness/server/server.ts';
import {
  datapoint,
  datapointHead,
  metric,
  openFiles,
  openStreams,
  ownMebibytes,
  pause,
  until,
} from '../harness/server/vitals.ts';
import { readRecords } from '../harness/storage/log.ts';
import { applyEdits, type Conversation, conversations, type Edit, piecesOf } from './mutations.ts';

const burstSize = 24;
/** Growth of the process's memory that is allowed once it is warm. */
const growthMebibytesMax = 96;
const spareFiles = 16;
/** How long a conversation listens behind its last byte. */
const silenceMsMax = 150;
/** Never 500, and 503 only for what nobody overloads here: those would say that garbage got too far. */
const statusesExpected = [100, 200, 201, 204, 400, 401, 404, 409, 413, 415, 431, 505];
/** Log lines that are as they should be: none. */
const logExpected = '';

export interface FuzzReport {
  seed: number;
  bursts: number;
  conversations: number;
  answers: Record<string, number>;
  /** Slowest heartbeat of the well-behaved device, one after each burst. */
  heartbeatMsMax: number;
  grownMebibytes: number;
  recordsStored: number;
}

interface Subject {
  server: TestServer;
  device: TestDevice;
  /** Who behaves well. */
  witness: TestDevice;
  valid: string[];
  hello: Buffer;
  answers: Record<string, number>;
  /** Records of syncs without a queue that were answered 201 in fuzzed conversations: each is stored. */
  synced: number;
}

/**
 * Bursts of spoilt conversations against a server of its own, until the time is over. After each burst a device
 * that behaves well must be answered, and the process be alive, quiet and no larger. In the end the log may
 * hold what was answered 201 and nothing else.
 * @throws Error naming the seed and the burst.
 */
export async function fuzz(seconds: number, seed: number, shards: number): Promise<FuzzReport> {
  await using server = await TestServer.start({
    shards,
    unauthorizedMax: 0,
    deviceRequestsPerSecondMax: 0,
    deviceBytesPerSecondMax: 0,
  });
  const fleet = await createFleet(server);
  const [device, witness] = [await fleet.createDevice(), await fleet.createDevice()];
  const subject: Subject = {
    server,
    device,
    witness,
    valid: validRequests(device),
    hello: await clientHello(),
    answers: {},
    synced: 0,
  };
  const endMs = performance.now() + seconds * 1_000;
  const spoilt = conversations(subject.valid.length);
  const edits = fc.array(editOfHello, { minLength: 1, maxLength: 3 });
  let burst = 0;
  let witnessed = 0;
  let heartbeatMsMax = 0;
  let mebibytesBefore = 0;
  let filesBefore = 0;
  while (performance.now() < endMs || burst < 3) {
    // Every burst can be made again from its own seed.
    const burstSeed = seed + burst;
    try {
      const talks = fc.sample(spoilt, { seed: burstSeed, numRuns: burstSize });
      const hellos = fc.sample(edits, { seed: burstSeed, numRuns: 2 });
      await Promise.all([
        ...talks.map((talk) => converse(subject, talk)),
        ...hellos.map((one) => greet(subject, one)),
      ]);
      const startMs = performance.now();
      const answer = await witness.request('POST', '/v1/datapoint/reading', { burst });
      heartbeatMsMax = Math.max(heartbeatMsMax, performance.now() - startMs);
      if (answer.status !== 201)
        throw new Error(`the well-behaved device got ${answer.status}: ${answer.text}`);
      witnessed += 1;
      if (!server.isRunning) throw new Error('the server has ended');
      if (server.stderr !== logExpected) throw new Error(`the server logged: ${server.stderr}`);
      if (burst === 2) [mebibytesBefore, filesBefore] = [ownMebibytes(server), openFiles(server)];
      const grown = ownMebibytes(server) - mebibytesBefore;
      if (burst > 2 && grown > growthMebibytesMax) throw new Error(`the server has grown by ${grown} MiB`);
    } catch (error) {
      const command = `npm run test:fuzz -- --seed ${burstSeed} --seconds 1 --shards ${shards}`;
      throw new Error(`burst ${burst} failed: ${(error as Error).message}; repeat it with: ${command}`);
    }
    burst += 1;
  }
  await until(async () => (await openStreams(server)) === 0);
  await until(async () => ((await metric(server, 'fleetpost_connections_open'))[0] ?? 0) <= spareFiles);
  await until(() => openFiles(server) <= filesBefore + spareFiles);
  const grownMebibytes = Math.round(ownMebibytes(server) - mebibytesBefore);
  const status = await server.stop();
  if (status !== 0) throw new Error(`the server ended with ${status}`);
  const recordsStored = await checkLog(subject, witnessed);
  const { answers } = subject;
  const talked = burst * burstSize;
  return {
    seed,
    bursts: burst,
    conversations: talked,
    answers,
    heartbeatMsMax,
    grownMebibytes,
    recordsStored,
  };
}

const editOfHello = fc.record({
  at: fc.nat({ max: 600 }),
  removed: fc.nat({ max: 20 }),
  added: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
});

/** Marks what fuzzed conversations send; whatever the mutations make of it, the payload is JSON if it is stored. */
function validRequests(device: TestDevice): string[] {
  const headers = { ...device.credentials };
  const key = { 'Idempotency-Key': uuidv7() };
  const records = syncRecords();
  return [
    datapoint(device, '{"fuzzed":1}'),
    datapoint(device, '{"fuzzed":2,"text":"\\u0000\\"}"}'),
    `${datapointHead(device, { 'Transfer-Encoding': 'chunked' })}5\r\n{"a":\r\n2\r\n1}\r\n0\r\n\r\n`,
    `${datapointHead(device, { ...key, 'Content-Length': '7' })}{"a":1}`,
    datapoint(device, '{"note":3}').replace('datapoint/reading', 'msg/note'),
    requestText('POST', '/v1/msg/note', headers),
    syncRequest(device, `{"records":[${records}]}`),
    syncRequest(device, `{"queue":"fuzz","seq":1,"records":[${records}],"mail":{"max":2,"bytes":99}}`),
    syncRequest(
      device,
      '{"settle":[{"id":"0190a5c8-7f3b-7000-8000-000000000000","verb":"ack","reply":{"a":1}}]}',
    ),
    requestText('POST', '/v1/heartbeat', headers),
    requestText('GET', '/v1', headers),
    requestText('GET', '/', {}),
    requestText('GET', '/v1/mailbox/size', headers),
    requestText('GET', '/v1/mailbox/next?shape=envelope', headers),
    requestText('HEAD', '/v1/mailbox/next', headers),
    requestText('PUT', '/v1/mailbox/ack/0190a5c8-7f3b-7000-8000-000000000000', headers),
    requestText('GET', '/v1/events', { ...headers, Accept: 'text/event-stream' }),
  ];
}

/** Two records as a sync has them, as text. */
function syncRecords(): string {
  const recordedAt = new Date().toISOString();
  return (
    '{"kind":"datapoint","schema":"reading","payload":{"fuzzed":4}},' +
    `{"kind":"message","schema":"note","payload":{"fuzzed":5,"text":"\\u00e9 \\"]}"},"recorded_at":"${recordedAt}"}`
  );
}

function syncRequest(device: TestDevice, body: string): string {
  const headers = { 'Content-Type': 'application/json', 'Content-Length': String(Buffer.byteLength(body)) };
  return requestText('POST', '/v1/sync', { ...device.credentials, ...headers }, body);
}

/** Writes the pieces, waits a little for answers, leaves in the given way. */
async function converse(subject: Subject, conversation: Conversation): Promise<void> {
  const { tls, tcp } = await openTls(subject.server);
  let text = '';
  let isClosed = false;
  tls.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
  });
  tls.on('close', () => {
    isClosed = true;
  });
  const closed = new Promise<void>((resolve) => tls.once('close', () => resolve()));
  for (const piece of piecesOf(conversation, subject.valid)) {
    if (isClosed) break;
    await Promise.race([closed, new Promise<void>((resolve) => tls.write(piece, () => resolve()))]);
  }
  if (conversation.ending === 'end') tls.end();
  if (conversation.ending !== 'reset') {
    const endMs = performance.now() + silenceMsMax;
    while (!isClosed && performance.now() < endMs) await pause(10);
  }
  tcp.resetAndDestroy();
  countAnswers(subject, text);
}

function countAnswers(subject: Subject, text: string): void {
  for (const [, digits] of text.matchAll(/HTTP\/1\.1 (\d{3}) /g)) {
    const status = Number(digits);
    if (!statusesExpected.includes(status))
      throw new Error(`an answer was ${status}: ${text.slice(0, 2_000)}`);
    subject.answers[status] = (subject.answers[status] ?? 0) + 1;
  }
  // An answer with `stored_to` is of a queue, whose records are stored once, however often they are answered.
  for (const [, records = ''] of text.matchAll(/\{"records":\[([^\]]*)\],"settled":\[\],"mailbox_size"/g))
    subject.synced += records.split('{"status":201}').length - 1;
}

/** A handshake that is not one, in one write or byte by byte. */
async function greet({ server, hello }: Subject, edits: Edit[]): Promise<void> {
  const tcp = await openTcp(server);
  const bytes = applyEdits(hello, edits);
  const closed = new Promise<void>((resolve) => tcp.once('close', () => resolve()));
  tcp.resume();
  if (bytes.length % 2 === 0) tcp.write(bytes);
  else for (const byte of bytes) tcp.write(Buffer.from([byte]));
  await Promise.race([closed, pause(silenceMsMax)]);
  tcp.resetAndDestroy();
}

/**
 * Everything in the log is whole JSON of one of the two devices under a schema that exists. Of the fuzzed device
 * there may be more than it saw answered, for it went away before many answers; of the other exactly what it was
 * answered.
 */
async function checkLog({ server, device, witness, synced }: Subject, witnessed: number): Promise<number> {
  const records = await readRecords(server.report);
  const schemas = ['datapoint reading', 'message note'];
  let own = 0;
  for (const record of records) {
    const value: unknown = JSON.parse(record.payload);
    const isKnown = record.fleetId === device.fleetId && schemas.includes(`${record.kind} ${record.schema}`);
    if (!isKnown || typeof value !== 'object') throw new Error(`stored: ${JSON.stringify(record)}`);
    if (record.deviceId === witness.deviceId) own += 1;
    else if (record.deviceId !== device.deviceId) throw new Error(`stored: ${JSON.stringify(record)}`);
  }
  const fuzzed = records.length - own;
  if (fuzzed < synced) throw new Error(`${synced} records of syncs were answered 201, ${fuzzed} are stored`);
  if (own !== witnessed) throw new Error(`${witnessed} datapoints were answered 201, ${own} are stored`);
  return records.length;
}
