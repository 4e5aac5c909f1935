import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { fleetpost } from '../../harness/command.ts';
import { createFleet, type TestFleet } from '../../harness/device.ts';
import { TestServer, temporaryFolder } from '../../harness/server.ts';

let server: TestServer;
let fleet: TestFleet;
const folder = temporaryFolder();
beforeAll(async () => {
  server = await TestServer.shared();
  fleet = await createFleet(server);
  await fleet.putSchema('datapoint', 'water', {
    type: 'object',
    properties: { litres: { type: 'number' }, place: { enum: ['hall', 'attic'] } },
    required: ['litres'],
  });
});

const head = "import type { Action } from 'fleetpost/action';\n";
const on = [{ kind: 'datapoint', schema: 'water' }];
const check = (source: string) =>
  server.admin<{ items: { line: number; column: number; length: number; msg: string }[]; msg: string }>(
    'POST',
    `/fleets/${fleet.fleetId}/actions:check`,
    { source, on },
  );

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

it('types that take too long end the check, and nothing else', async () => {
  const hostile = `type R<N, A extends any[] = []> = A['length'] extends N ? A : R<N, [...A, A['length']]>;
    type S<A> = A extends [infer H, ...infer T] ? S<T> | [H, ...S<T>] : [];
    export const x: S<R<20>> = null as any as S<R<19>>;`;
  const answer = await check(hostile);
  expect(answer.body.msg ?? answer.body.items[0]?.msg).toMatch(
    /within 5 seconds and 256 MB|too complex|excessively deep/,
  );
  expect((await check(`${head}export default (() => {}) satisfies Action;`)).body.items).toEqual([]);
}, 180_000);
