import { pino } from 'pino';
import { afterAll, expect, it } from 'vitest';
import type { HostCall } from '../../../../src/features/actions/sandbox/run.ts';
import { limits, record, startActions, startActionsForTest, startCompiler } from './started-actions.ts';

const { pool, run, runBody } = startActions();
const compiler = startCompiler();
afterAll(() => Promise.all([pool.close(), compiler.close()]));

const doorOpen = { fleetId: 'FLEET001', name: 'door-open', asker: { token: 'own', name: 'a test' } };

it('an action is given its record and can send, look up, remember and log', async () => {
  const asked: HostCall[] = [];
  const report = await runBody(
    `const device = await fleet.device(record.device);
     const count = ((await fleet.state.get('count')) ?? 0) + 1;
     await fleet.state.set('count', count);
     await fleet.send('LOCK000001', 'lock_check', { door: record.payload.door, by: device.name });
     await fleet.send(['LOCK000001', 'LOCK000002'], 'ring', undefined, { ttlSeconds: 60 });
     await fleet.sendToTag('hall', 'light', {}, { replaceKey: 'light_1' });
     fleet.log('count', count, { tags: device.tags });
     console.log(Object.keys(record).join());`,
    {
      answer: async (question) => {
        asked.push(question);
        return question.type === 'state' ? '41' : JSON.stringify({ name: 'Door', tags: ['hall'] });
      },
    },
  );
  expect(asked).toEqual([
    { type: 'device', id: 'SENSOR0001' },
    { type: 'state', key: 'count' },
  ]);
  expect(report).toMatchObject({
    error: undefined,
    sends: [
      { to: { devices: ['LOCK000001'] }, name: 'lock_check', payload: '{"door":3,"by":"Door"}' },
      { to: { devices: ['LOCK000001', 'LOCK000002'] }, name: 'ring', payload: '{}', ttlSeconds: 60 },
      { to: { tag: 'hall' }, name: 'light', payload: '{}', replaceKey: 'light_1' },
    ],
    writes: [{ key: 'count', value: '42' }],
    log: ['count 42 {"tags":["hall"]}', 'id,kind,device,name,time,payload'],
  });
  expect(report.wallMilliseconds).toBeGreaterThanOrEqual(0);
});

it('what there is not is null for a device and undefined for a key', async () => {
  const { log } = await runBody(
    `fleet.log(await fleet.device('NOBODY0001'), await fleet.state.get('nothing'));`,
  );
  expect(log).toEqual(['null undefined']);
});

it('a run reads what it wrote itself, and each key is written once', async () => {
  const { log, writes } = await runBody(
    `await fleet.state.set('a', 1); await fleet.state.set('a', { b: 2 });
     fleet.log(await fleet.state.get('a'));
     await fleet.state.delete('a'); fleet.log(await fleet.state.get('a'));
     await fleet.state.set('c', null); await fleet.state.set('d', 'kept');`,
    { answer: async () => '"of the server"' },
  );
  expect(log).toEqual(['{"b":2}', 'undefined']);
  expect(writes).toEqual([
    { key: 'a', value: null },
    { key: 'c', value: null },
    { key: 'd', value: '"kept"' },
  ]);
});

it.each([
  [`fleet.send('short', 'x')`, 'TypeError: send: a device id is 10 of A-Z, a-z and 0-9.'],
  [`fleet.send({}, 'x')`, 'TypeError: send: `to` must be a device id or an array of them.'],
  [`fleet.send(['LOCK000001', 1], 'x')`, 'TypeError: send: a device id'],
  [`fleet.send('LOCK000001', 'no spaces')`, 'TypeError: send: the name of a mail'],
  [`fleet.send('LOCK000001')`, 'TypeError: send: the name of a mail'],
  [`fleet.send('LOCK000001', 'x', [])`, 'TypeError: send: the payload must be a JSON object.'],
  [`fleet.send('LOCK000001', 'x', null)`, 'TypeError: send: the payload must be a JSON object.'],
  [`fleet.send('LOCK000001', 'x', () => {})`, 'TypeError: send: the payload must be a JSON object.'],
  [
    `fleet.send('LOCK000001', 'x', { a: 'é'.repeat(600) })`,
    'RangeError: send: the payload is larger than 1024',
  ],
  [`fleet.send('LOCK000001', 'x', {}, { ttlSeconds: 0 })`, 'RangeError: send: ttlSeconds'],
  [`fleet.send('LOCK000001', 'x', {}, { life: 1 })`, 'TypeError: send: there is no option "life".'],
  [`fleet.send('LOCK000001', 'x', {}, { replaceKey: 'a b' })`, 'TypeError: send: replaceKey is 1 to 64 of'],
  [`fleet.sendToTag('', 'x')`, 'TypeError: sendToTag: the tag must be a text of 1 to 64 characters.'],
  [`fleet.sendToTag('t'.repeat(65), 'x')`, 'TypeError: sendToTag: the tag'],
  [`fleet.device(3)`, 'TypeError: device: a device id'],
  [`fleet.state.set('', 1)`, 'TypeError: state.set: the key must be a text of 1 to 128 characters.'],
  [`fleet.state.set('k')`, 'TypeError: state.set: the value must be JSON.'],
  [`fleet.state.set('k', 'v'.repeat(63))`, 'RangeError: state.set: the value is larger than 64 bytes'],
  [`fleet.state.delete('k'.repeat(129))`, 'TypeError: state.delete: the key'],
])('a wrong call throws where it is made: %s', async (call, message) => {
  const caught = await runBody(`try { ${call}; } catch (error) { fleet.log(String(error)); }`);
  expect(caught).toMatchObject({ error: undefined, sends: [], writes: [] });
  expect(caught.log[0]).toContain(message);
  const thrown = await runBody(`await ${call};`);
  expect(thrown.error).toMatchObject({ code: 'invalid_call', msg: expect.stringContaining(message) });
});

it('what is thrown is told with the lines it came from', async () => {
  const { error, sends, log } = await run(
    `function inner(x) {\n  return x.missing.member;\n}\nexport default async (record, fleet) => {
       fleet.log('before'); fleet.send('LOCK000001', 'x');\n  inner({});\n};`,
  );
  expect(error?.code).toBe('threw');
  expect(error?.msg).toMatch(/^TypeError: cannot read property 'member' of undefined\n.*tried\.js:2:\d+/);
  expect({ sends, log }).toEqual({ sends: [], log: ['before'] });
});

it.each([
  [`throw 'a text'`, 'a text'],
  [`throw undefined`, 'undefined'],
  [`throw { code: 3 }`, '{"code":3}'],
  [
    `throw new RangeError('esc \\u001b[31m\\u202e\\r\\nnext')`,
    'RangeError: esc \\u{1b}[31m\\u{202e}\\r\nnext',
  ],
  [`throw { toString() { throw 1 }, toJSON() { throw 2 } }`, '(cannot be shown)'],
  [
    `class E extends Error { get message() { throw 1 } get stack() { for (;;); } }; throw new E()`,
    'It threw',
  ],
])('anything may be thrown: %s', async (body, message) => {
  const { error } = await runBody(body);
  expect(error?.code).toBe('threw');
  expect(error?.msg).toContain(message);
});

it('a long error is cut', async () => {
  const { error } = await runBody(`throw new Error('\\u0000'.repeat(10_000))`);
  expect(error?.msg.length).toBeLessThanOrEqual(2_000);
});

it('it is waited for what an action leaves under way', async () => {
  const { sends } = await runBody(
    `['LOCK000001', 'LOCK000002'].forEach(async (id) => {
       if (await fleet.device(id)) fleet.send(id, 'x');
     });`,
    { answer: async () => '{}' },
  );
  expect(sends).toHaveLength(2);
});

it('many questions at once are all answered, in any order', async () => {
  const { log } = await runBody(
    `const all = await Promise.all(Array.from({ length: 500 }, (_, n) => fleet.state.get('k' + n)));
     fleet.log(all.every((value, n) => value === 'k' + n), all.length);`,
    {
      limits: { readsMax: 500 },
      answer: async (question) => {
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 5));
        return JSON.stringify(question.type === 'state' && question.key);
      },
    },
  );
  expect(log).toEqual(['true 500']);
});

it('a question that the server cannot answer throws in the action', async () => {
  const { error } = await runBody(`await fleet.device('LOCK000001')`, {
    answer: () => Promise.reject(new Error('a detail of the server')),
  });
  expect(error?.code).toBe('threw');
  expect(error?.msg).toContain('The server could not answer.');
});

it('a realm is kept for its key, and not after a run that failed', async () => {
  const code = `let runs = 0;
    export default (record, fleet) => { fleet.log(++runs); if (record.payload.fail) throw new Error('x'); };`;
  const logs: unknown[] = [];
  for (const payload of ['{}', '{}', '{"fail":true}', '{}'])
    logs.push(...(await run(code, { key: 'kept', record: { payload } })).log);
  expect(logs).toEqual(['1', '2', '3', '1']);
});

const count = 'let runs = 0; export default (record, fleet) => { fleet.log(++runs); };';

it('a thread keeps as many realms as there is memory for, those used last', async () => {
  const few = startActionsForTest({ threads: 1, warmBytesMax: 4 * 2 ** 20 });
  for (let n = 0; n < 4; n += 1) await few.run(count, { key: `small ${n}` });
  expect((await few.run(count, { key: 'small 0' })).log).toEqual(['2']);
  // It has let go of what it used; the memory is the engine's nonetheless.
  const large = `const all = []; for (let n = 0; n < 200; n += 1) all.push(new ArrayBuffer(16_384)); ${count}`;
  await few.run(`{ ${large.replace(count, '')} } ${count}`, { key: 'large' });
  expect((await few.run(count, { key: 'small 1' })).log).toEqual(['1']);
  const none = startActionsForTest({ threads: 1, warmBytesMax: 0 });
  for (let n = 0; n < 2; n += 1) expect((await none.run(count, { key: 'any' })).log).toEqual(['1']);
});

it('64 actions stay ready, and what is only tried is not kept', async () => {
  for (const runs of ['1', '2']) {
    for (let n = 0; n < 64; n += 1) {
      expect((await run(count, { key: `of 64: ${n}` })).log).toEqual([runs]);
    }
  }
  const request = { code: count, name: 'tried', record, limits };
  for (let n = 0; n < 2; n += 1) {
    const { log } = await pool.run({ ...request, key: undefined }, async () => 'null');
    expect(log).toEqual(['1']);
  }
});

it('a record that the engine cannot read is told apart from what an action does', async () => {
  const deep = (depth: number) => `{"n":${'['.repeat(depth)}${']'.repeat(depth)}}`;
  const code = `export default (record, fleet) => { fleet.log('it runs'); fleet.log(JSON.stringify(record.payload).length); };`;
  expect(await run(code, { record: { payload: deep(128) } })).toMatchObject({
    error: undefined,
    log: ['it runs', '262'],
  });
  for (const key of ['new', 'warm', 'warm']) {
    if (key === 'warm') await run(code, { key });
    const { error, log } = await run(code, { key, record: { payload: deep(30_000) } });
    expect({ code: error?.code, log }).toEqual({ code: 'unreadable_record', log: [] });
  }
  // Memory that earlier runs have left in a realm is no reason to give a record up.
  const hoarder = `const all = [];
    export default (record, fleet) => { fleet.log(record.payload.all?.length ?? 0); if (!record.payload.all) all.push('x'.repeat(14_000_000)); };`;
  await run(hoarder, { key: 'hoarder', record: { payload: '{}' } });
  const payload = JSON.stringify({ all: Array.from({ length: 30_000 }, () => ({ n: 1 })) });
  expect(await run(hoarder, { key: 'hoarder', record: { payload } })).toMatchObject({
    error: undefined,
    log: ['30000'],
  });
});

it('a question that cannot be answered is logged once a run, under the name of its action', async () => {
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const actions = startActionsForTest({ threads: 1, log });
  const { error } = await actions.runBody(
    `await Promise.allSettled([fleet.device('LOCK000001'), fleet.device('LOCK000002')]);
     await fleet.state.get('x');`,
    { name: 'door-open', answer: () => Promise.reject(new Error('no database')) },
  );
  expect(error?.msg).toContain('The server could not answer.');
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ action: 'door-open', err: { message: 'no database' } });
});

it('a fleet that is kept from an earlier run is of no use', async () => {
  const code = `let first;
    export default (record, fleet) => { first ??= fleet; first.send('LOCK000001', 'x'); };`;
  expect((await run(code, { key: 'stale' })).sends).toHaveLength(1);
  const second = await run(code, { key: 'stale' });
  expect(second.sends).toEqual([]);
  expect(second.error?.msg).toContain('The run that this belongs to has ended.');
});

it('TypeScript is translated, and its errors are told by its own lines', async () => {
  const source = `import type { Action } from 'fleetpost/action';
interface Opened {
  door: number;
}
enum Way { In = 1 }
const action: Action<Opened> = (record, fleet) => {
  const nothing: Opened | null = null;
  fleet.log(record.payload.door satisfies number, Way.In);
  if (record.name === 'fails') fleet.log(nothing!.door);
};
export default action;`;
  const code = await compiler.translate(doorOpen, source);
  expect((await run(code)).log).toEqual(['3 1']);
  const failed = await run(code, { name: 'door-open', record: { ...record, name: 'fails' } });
  expect(failed.error?.msg).toMatch(/\(door-open\.ts:9:\d+\)/);
});

it.each([
  ['const a: = 3', 'Type expected. (door-open.ts:1:10)'],
  ['('.repeat(100_000), 'nested too deeply'],
])('TypeScript that cannot be compiled is refused: %s', async (source, message) => {
  await expect(compiler.translate(doorOpen, source)).rejects.toMatchObject({
    code: 'invalid_action',
    message: expect.stringContaining(message),
  });
});

it.each([
  ['export default (\n', 'door-open.js:'],
  ['export const action = () => {}', 'default export of the module must be a function'],
  ['export default 3', 'default export of the module must be a function'],
  [`throw new Error('at once'); export default () => {}`, 'at once'],
  ['await new Promise(() => {}); export default () => {}', 'awaits something'],
  [`import fs from 'node:fs'; export default () => fs`, `cannot import anything, including 'node:fs'`],
])('code that cannot be run is refused: %s', async (code, message) => {
  const error = await pool.load({ code, name: 'door-open' }, limits);
  expect(error).toMatchObject({ code: 'invalid_code', msg: expect.stringContaining(message) });
});

it('a module may wait at its top for what comes', async () => {
  const code = 'const three = await Promise.resolve(3); export default (record, fleet) => fleet.log(three);';
  expect(await pool.load({ code, name: 'door-open' }, limits)).toBeUndefined();
  expect((await run(code)).log).toEqual(['3']);
});

it('a start of the pool that failed is tried again by the next run', async () => {
  const actions = startActionsForTest({ threads: 0 });
  const code = 'export default (record, fleet) => fleet.log(1);';
  expect((await actions.run(code)).error?.code).toBe('thread_lost');
  actions.config.actionThreads = 1;
  expect((await actions.run(code)).log).toEqual(['1']);
});

it('runs under way when the pool is closed are told so, and so are those that come later', async () => {
  const actions = startActionsForTest();
  let asked = () => {};
  const isAsked = new Promise<void>((resolve) => {
    asked = resolve;
  });
  const answer = () => {
    asked();
    return new Promise<string>(() => {});
  };
  const underWay = actions.runBody(`await fleet.device('LOCK000001')`, { answer });
  const queued = actions.runBody('');
  await isAsked;
  await actions.pool.close();
  const stopped = { code: 'thread_lost', msg: 'The server stopped while the action ran.' };
  expect((await underWay).error).toEqual(stopped);
  expect((await queued).error).toEqual(stopped);
  expect((await actions.runBody('')).error).toEqual(stopped);
});
