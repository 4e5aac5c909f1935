import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { uuidv7 } from 'uuidv7';
import { createFleet, oneConnection, type TestDevice } from '../harness/devices/device.ts';
import { TestServer } from '../harness/server/server.ts';

/**
 * `npm run test:fsync`: kill -9 leaves the page cache alone, so it cannot show that an answer waits for the
 * disk. This looks at the system calls of a running server with strace: between a lone request and its answer
 * there must be the write of the data, an fdatasync of the same file that began after it and has ended, and
 * the write of LMDB's root through a descriptor that is synchronous (O_DSYNC).
 */
const requestsOfEach = 50;
/** LMDB's two roots are the first two pages. */
const rootBytes = 8_192;
const synchronous = 0o10000;

interface SystemCall {
  name: string;
  descriptor: number;
  path: string;
  offset: number;
  result: number;
  startedAt: number;
  endedAt: number;
}

const traced = 'fdatasync,fsync,pwrite64,pwritev,writev,write,sendto,recvfrom';

/** strace's lines in the order in which the calls began; a call that others interrupt takes two lines. */
function parse(trace: string): SystemCall[] {
  const calls: SystemCall[] = [];
  const unfinished = new Map<string, SystemCall>();
  for (const line of trace.split('\n')) {
    const [, thread = '', time = '', rest = ''] = /^(\d+)\s+(\d+\.\d+) (.*)$/.exec(line) ?? [];
    const result = Number(/= (-?\d+)/.exec(rest.slice(rest.lastIndexOf(')')))?.[1] ?? Number.NaN);
    const begun = /^(\w+)\((\d+)<([^>]*)>/.exec(rest);
    if (begun !== null) {
      const [, name = '', descriptor, path = ''] = begun;
      const offset = Number(/, (\d+)(\)| <unfinished)/.exec(rest)?.[1]);
      const startedAt = Number(time);
      const call = {
        name,
        descriptor: Number(descriptor),
        path,
        offset,
        result,
        startedAt,
        endedAt: startedAt,
      };
      calls.push(call);
      if (rest.endsWith('<unfinished ...>')) unfinished.set(thread, call);
    } else if (rest.startsWith('<...')) {
      const call = unfinished.get(thread);
      if (call !== undefined) Object.assign(call, { endedAt: Number(time), result });
      unfinished.delete(thread);
    }
  }
  return calls;
}

/** Finds the step missing before the answer, or undefined if nothing is. */
function missing(before: readonly SystemCall[], answer: SystemCall, isSynchronous: (fd: number) => boolean) {
  const done = before.filter(({ endedAt, result }) => endedAt <= answer.startedAt && result >= 0);
  const isWrite = ({ name, path }: SystemCall): boolean => name.includes('write') && path.endsWith('.mdb');
  const root = done.findLast((call) => isWrite(call) && call.offset < rootBytes);
  if (root === undefined) return 'no root was written';
  if (!isSynchronous(root.descriptor)) return 'the root was written through a descriptor without O_DSYNC';
  const sync = done.findLast(
    ({ name, path, endedAt }) => name === 'fdatasync' && path === root.path && endedAt <= root.startedAt,
  );
  if (sync === undefined) return 'no fdatasync ended before the root was written';
  const data = done.filter((call) => isWrite(call) && call.path === root.path && call !== root);
  if (data.length === 0) return 'no data was written';
  if (data.some(({ endedAt }) => endedAt > sync.startedAt)) return 'data was written after the fdatasync';
  return undefined;
}

async function requests(device: TestDevice, mailIds: readonly string[]): Promise<number> {
  const agent = oneConnection(device.server);
  let sent = 0;
  const send = async (method: string, path: string, body?: string, headers = {}): Promise<void> => {
    const { status } = await device.request(method, path, body, headers, agent);
    if (status >= 300) throw new Error(`${path} was answered ${status}`);
    sent += 1;
  };
  for (const mailId of mailIds) {
    await send('POST', '/v1/datapoint/reading', '{"a":1}');
    await send('POST', '/v1/datapoint/reading', '{"a":1}', { 'Idempotency-Key': uuidv7() });
    await send('POST', '/v1/msg/note', '{}');
    await send('PUT', `/v1/mailbox/requeue/${mailId}`);
    await send('PUT', `/v1/mailbox/ack/${mailId}`);
  }
  await agent.destroy();
  return sent;
}

const folder = mkdtempSync(join(tmpdir(), 'fleetpost-fsync-'));
const server = await TestServer.start({ shards: 2, activityFlushSeconds: 300 });
const pid = server.process.pid;
const device = await (await createFleet(server)).createDevice();
const mailIds: string[] = [];
while (mailIds.length < requestsOfEach) mailIds.push((await device.sendMail()).mailId);

const trace = join(folder, 'trace');
const strace = spawn(
  'strace',
  ['-f', '-ttt', '-y', '-s', '0', '-e', `trace=${traced}`, '-o', trace, '-p', String(pid)],
  { stdio: ['ignore', 'ignore', 'pipe'] },
);
await Promise.race([
  once(strace.stderr, 'data'),
  once(strace, 'error').then(() => {
    throw new Error('strace is needed: apt-get install strace.');
  }),
]);
const sent = await requests(device, mailIds);
const isSynchronous = (fd: number): boolean =>
  (Number.parseInt(/flags:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'utf8'))?.[1] ?? '0', 8) &
    synchronous) !==
  0;
strace.kill('SIGINT');
await once(strace, 'exit');

const calls = parse(readFileSync(trace, 'utf8'));
let requestAt = -1;
let kept = 0;
const wrong: string[] = [];
for (const [at, call] of calls.entries()) {
  if (!call.path.startsWith('socket:')) continue;
  if (call.name === 'recvfrom' && call.result > 0) requestAt = at;
  if (call.name !== 'sendto' || requestAt < 0) continue;
  const complaint = missing(calls.slice(requestAt, at), call, isSynchronous);
  if (complaint === undefined) kept += 1;
  else wrong.push(complaint);
  requestAt = -1;
}
await server[Symbol.asyncDispose]();
rmSync(folder, { recursive: true });
console.log(`${sent} lone writes: ${kept} answers left after write, fdatasync and a synchronous root write.`);
// The handshake is answered as well, and writes nothing.
if (kept !== sent) for (const complaint of new Set(wrong)) console.log(`VIOLATION: ${complaint}`);
process.exitCode = kept === sent ? 0 : 1;
