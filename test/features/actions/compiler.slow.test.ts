import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { usageOf } from '../../../src/features/actions/compiler/process-usage.ts';
import { createFleet, type TestFleet } from '../../harness/devices/device.ts';
import { enumBomb, typeBomb } from '../../harness/features/bombs.ts';
import { descendants } from '../../harness/machine/process-tree.ts';
import { fleetpost } from '../../harness/server/command.ts';
import { TestServer, temporaryFolder } from '../../harness/server/server.ts';

let server: TestServer;
let fleet: TestFleet;
const folder = temporaryFolder();
beforeAll(async () => {
  server = await TestServer.start({ deviceRequestsPerSecondMax: 0 });
  fleet = await createFleet(server);
  await fleet.putSchema('datapoint', 'water', {
    type: 'object',
    properties: { litres: { type: 'number' }, place: { enum: ['hall', 'attic'] } },
    required: ['litres'],
  });
});

afterAll(() => server[Symbol.asyncDispose]());

const patience = { timeout: 300_000, interval: 20 };
const head = "import type { Action } from 'fleetpost/action';\n";
const on = [{ kind: 'datapoint', schema: 'water' }];
interface Checked {
  items: { line: number; column: number; length: number; msg: string }[];
  error: string;
  msg: string;
}
const check = (source: string, { fleetId } = fleet, more: object = {}) =>
  server.admin<Checked>('POST', `/fleets/${fleetId}/actions:check`, { source, on, ...more });
const trivial = `${head}export default (() => {}) satisfies Action;`;
/** Takes the longer to check the longer those tuples are: a second at some 600. */
const tuples = (...lengths: number[]) =>
  `type R<N, A extends any[] = []> = A['length'] extends N ? A : R<N, [...A, 0]>;
  ${lengths.map((n) => `export const q${n}: R<${n}> = null as any;`).join('\n')}`;
/** Its process takes as much memory and time as it may within the limits, more or less. */
const slow = tuples(800, 801);
/** Processes of the compiler that the server has now. */
function compilers(): number[] {
  return descendants(server.report.pid).filter((pid) =>
    readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('compiler-process'),
  );
}

it('code is checked against the API and the payload types of its schemas', async () => {
  const sound = `${head}const act: Action = async ({ payload, device }, fleet) => {
    if (payload.litres.toFixed(1) !== '0' && payload.place === 'hall') await fleet.send(device, 'a', { b: payload.other.c });
    console.log(device);
  };\nexport default act;\n`;
  expect((await check(sound)).body.items).toEqual([]);
  const wrong = sound.replace('fleet.send', 'fleet.sendd').replace('toFixed', 'tooFixed');
  const { items } = (await check(wrong)).body;
  expect(items).toMatchObject([
    { line: 3, column: 24, length: 8, msg: expect.stringContaining("'tooFixed'") },
    { line: 3, msg: expect.stringContaining("'sendd' does not exist on type 'Fleet'") },
  ]);
  expect((await check('import { a } from "node:fs";\nconsole.log(a);')).body.items).toHaveLength(1);
});

it('an action with type errors is deployed only by force, and the errors name the file', async () => {
  const file = join(folder, 'pump.ts');
  writeFileSync(file, `${head}const act: Action = (_, fleet) => fleet.sendd();\nexport default act;\n`);
  const where = ['--fleet', fleet.fleetId, '--data', server.report.data];
  const put = (...more: string[]) =>
    fleetpost(['action', 'put', 'pump', file, '--on', 'datapoint:water', ...where, ...more]);
  const refused = await put();
  expect(refused.status).toBe(1);
  expect(refused.stderr).toMatch(/type errors.*\n.*pump\.ts:2:41 Property 'sendd' does not exist/);
  expect(await put('--force')).toMatchObject({ status: 0, stderr: '' });
});

it.each([
  [
    'a tuple that grows',
    `type R<N, A extends any[] = []> = A['length'] extends N ? A : R<N, [...A, A['length']]>;
    type S<A> = A extends [infer H, ...infer T] ? S<T> | [H, ...S<T>] : [];
    export const x: S<R<20>> = null as any as S<R<19>>;`,
  ],
  [
    'endless recursion',
    `type Q<N extends number, A extends any[] = []> = Q<N, [...A, 0]>; export let y: Q<1> = 1;`,
  ],
  [
    'texts over unions',
    `type U = 'a'|'b'|'c'|'d'|'e'|'f'|'g'|'h'|'i'|'j'; type V = \`\${U}\${U}\${U}\${U}\`;
    export let w: \`\${V}\${U}\` = 'z';`,
  ],
  [
    'an enum of long texts',
    `const enum C { A = 'x'.repeat(1 << 29), B = \`\${A}\${A}\` } export default () => C.B;`,
  ],
  ['deep nesting', '('.repeat(100_000)],
])('%s ends the check at most, with a sentence', async (_, source) => {
  const { status, body } = await check(source);
  expect([200, 400]).toContain(status);
  expect(body.msg ?? body.items[0]?.msg).toMatch(
    /_exceeded\)|too complex|excessively deep|circular|must be constant|expected/,
  );
  expect((await check(trivial)).body.items).toEqual([]);
});

it('a source that ends its compiler ends nothing else, whatever asks for it', async () => {
  const device = await fleet.createDevice();
  let hasEnded = false;
  const beats = (async () => {
    while (!hasEnded) expect((await device.heartbeat()).status).toBe(201);
  })();
  const draft = { source: enumBomb, language: 'typescript', on };
  const record = { device: device.deviceId, payload: { litres: 1 } };
  const path = `/fleets/${fleet.fleetId}/actions/bomb`;
  try {
    const answers = [
      await check(typeBomb, fleet, { name: 'bomb' }),
      await server.admin<Checked>('PUT', path, { ...draft, force: true }),
      await server.admin<Checked>('POST', `${path}/test`, { record, draft }),
    ];
    for (const { status, body } of answers) {
      expect(status).toBe(400);
      expect(body).toMatchObject({
        error: 'invalid_action',
        msg: expect.stringContaining('(memory_exceeded)'),
      });
    }
  } finally {
    hasEnded = true;
  }
  await beats;
  expect(server.isRunning).toBe(true);
  expect(server.stderr.match(/"reason":"memory"/g)).toHaveLength(3);
  expect(server.stderr).toContain(`"fleet":"${fleet.fleetId}","action":"bomb","token":"bootstrap"`);
  const metrics = await (await fetch(`${server.report.admin_url}/metrics`)).text();
  expect(metrics).toContain('fleetpost_action_compiler_losses_total{reason="memory"} 3');
}, 600_000);

it('a process of the compiler that was ended between two sources is nobody’s fault: the next has another', async () => {
  await check(trivial);
  const [pid = 0] = compilers();
  process.kill(pid, 'SIGKILL');
  await expect.poll(() => existsSync(`/proc/${pid}`), patience).toBe(false);
  expect(await check(trivial)).toMatchObject({ status: 200, body: { items: [] } });
  expect(compilers()).not.toContain(pid);
});

it('a check of a small action takes a quarter of a second of CPU time at most', async () => {
  await check(trivial);
  const [pid = 0] = compilers();
  const spentMs: number[] = [];
  for (let beforeMs = usageOf(pid)?.cpuMilliseconds ?? 0; spentMs.length < 5; ) {
    expect((await check(trivial)).status).toBe(200);
    const afterMs = usageOf(pid)?.cpuMilliseconds ?? Number.NaN;
    spentMs.push(afterMs - beforeMs);
    beforeMs = afterMs;
  }
  expect(Math.min(...spentMs)).toBeLessThan(250);
}, 300_000);

it('a newer check of an action takes the place of one of the same token that waits', async () => {
  await check(trivial);
  const [pid = 0] = compilers();
  const spentMs = () => usageOf(pid)?.cpuMilliseconds ?? 0;
  const beforeMs = spentMs();
  const underWay = check(slow, fleet, { name: 'typed' });
  await expect.poll(() => spentMs() - beforeMs, patience).toBeGreaterThan(100);
  const checks = Array.from({ length: 3 }, () => check(trivial, fleet, { name: 'typed' }));
  const otherOne = check(trivial, fleet, { name: 'other' });
  const answers = await Promise.all(checks);
  expect(answers.filter(({ status, body }) => status === 409 && body.error === 'replaced')).toHaveLength(2);
  expect(answers.find(({ status }) => status === 200)?.body.items).toEqual([]);
  for (const one of [await underWay, await otherOne]) expect(one.status).not.toBe(409);
}, 300_000);

it('a fleet waits behind one check of another, however many that has asked for', async () => {
  const [greedy, other] = [await createFleet(server), await createFleet(server)];
  let ended = 0;
  const many = Array.from({ length: 20 }, async (_, n) => {
    const { status } = await check(`${tuples(600)} // ${n}`, greedy);
    ended += 1;
    return status;
  });
  await expect.poll(() => ended, patience).toBeGreaterThan(0);
  const before = ended;
  expect((await check(trivial, other)).status).toBe(200);
  // One of the checks counted was under way, and one ended before the question arrived.
  expect(ended - before).toBeLessThanOrEqual(2);
  const again = ended;
  const body = { source: trivial, language: 'typescript', on: [{ kind: 'datapoint', schema: 'reading' }] };
  expect((await server.admin('PUT', `/fleets/${other.fleetId}/actions/own`, body)).status).toBe(201);
  // It takes two turns: to be compiled and to be checked.
  expect(ended - again).toBeLessThanOrEqual(4);
  expect(ended).toBeLessThan(many.length);
  // The remaining checks take their turns beside the tests below.
  void Promise.allSettled(many);
}, 300_000);

it('the process of the compiler ends with the server, also amid a check', async () => {
  const own = await check(trivial);
  expect(own.status).toBe(200);
  const [pid = 0] = compilers();
  const busy = check(slow).catch(() => {});
  await server.kill();
  await busy;
  await expect.poll(() => existsSync(`/proc/${pid}`)).toBe(false);
});
