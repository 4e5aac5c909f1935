/** Hostile trial of the sandbox: escapes, endless code, memory, logs. */

import { afterAll, expect, it } from 'vitest';
import type { RunErrorCode } from '../../../../src/features/actions/sandbox/run.ts';
import { startActions, limits as usual } from './started-actions.ts';

/** One thread: what an action breaks, the next one meets. */
const { pool, run, runBody } = startActions();
afterAll(() => pool.close());

async function expectWell(): Promise<void> {
  const { error, sends, log } = await runBody(
    `fleet.log(JSON.stringify([...'ab'].map((x) => ({ x }))), Object.keys(globalThis).join());
     await fleet.device(record.device);
     await fleet.send('LOCK000001', 'well', { door: record.payload.door });`,
  );
  expect(error).toBeUndefined();
  expect(sends).toEqual([{ to: { devices: ['LOCK000001'] }, name: 'well', payload: '{"door":3}' }]);
  expect(log).toEqual(['[{"x":"a"},{"x":"b"}] console']);
}

/** Each is an expression that is known to lead out of some sandbox; here it must throw or be undefined. */
const ways = [
  'process',
  'require',
  'module',
  'Buffer',
  'fetch',
  'setTimeout',
  'WebAssembly',
  'Atomics',
  'std',
  'os',
  'scriptArgs',
  'host',
  'glue',
  'globalThis.process',
  'globalThis.host',
  'this',
  '(function () { return this })()',
  `this.constructor.constructor('return process')()`,
  `globalThis.constructor.constructor('return process')()`,
  `fleet.constructor.constructor('return process')()`,
  `fleet.send.constructor('return process')()`,
  `record.constructor.constructor('return process.mainModule.require("fs")')()`,
  `fleet.state.get.constructor('return process')().then((found) => fleet.log(found)).then(() => undefined)`,
  `(async () => {}).constructor('return process')().catch(() => undefined)`,
  `(function* () {}).constructor('return process')().next().value`,
  `new Function('return typeof require === "undefined" ? undefined : require')()`,
  `Function('return this.process')()`,
  `(0, eval)('process')`,
  `eval('require')`,
  `await import('fs')`,
  `await import('node:process')`,
  `await import('data:text/javascript,export default 1')`,
  `await import('./action.js')`,
  `await import('glue.js')`,
  `await import('/etc/passwd')`,
  `import.meta.url && undefined`,
  `arguments.callee.caller`,
  `fleet.send.caller`,
  `fleet.send.arguments`,
  `Error.prepareStackTrace`,
  `(() => { Error.prepareStackTrace = (e, frames) => frames; const { stack } = new Error(); return Array.isArray(stack) ? stack[0].getThis?.() : undefined; })()`,
  `(() => { Error.stackTraceLimit = Infinity; try { fleet.send(); } catch (e) { return e.constructor.constructor('return process')(); } })()`,
  `(() => { try { null.x } catch (e) { return e.constructor.constructor('return process')() } })()`,
  `(() => { try { fleet.send({ toJSON() { return process } }) } catch (e) { return e.process } })()`,
  `(() => { const p = new Proxy({}, { get: (t, k, r) => r.constructor.constructor('return process')() }); return fleet.send('LOCK000001', 'x', p); })()`,
  `new Proxy(fleet.send, { apply: (target) => target.constructor('return process')() })()`,
  `Reflect.construct(Function, ['return process'])()`,
  `Object.getPrototypeOf(fleet.log).constructor('return process')()`,
  `record.payload.polluted`,
  `record.payload.__proto__ = { get process() { return process } }, record.payload.process`,
  `({}).polluted`,
  `Symbol.for('nodejs.util.inspect.custom') in globalThis ? 1 : undefined`,
  `globalThis[Symbol.for('process')]`,
  `new Intl.DateTimeFormat()`,
  `new SharedWorker('x')`,
  `new ShadowRealm()`,
  `$262`,
  `print('x')`,
  `quit()`,
  `load('/etc/passwd')`,
];

it.each(ways)('leads nowhere: %s', async (way) => {
  const { error, log } = await run(
    `export default async function (record, fleet) {
       const found = await (${way});
       if (found !== undefined) throw new Error('found ' + String(found));
     }`,
  );
  expect(log.join()).not.toMatch(/object|function/);
  if (error !== undefined) {
    expect(['threw', 'invalid_call', 'invalid_code', 'stack_exceeded']).toContain(error.code);
    expect(error.msg).toMatch(
      /not defined|not a function|cannot read|cannot import anything|invalid|undefined|TypeError|SyntaxError|stack overflow/,
    );
    expect(error.msg).not.toContain('found');
  }
});

it('there is nothing in the realm but the language and the log', async () => {
  const { log } = await run(
    `const names = Object.getOwnPropertyNames(globalThis).filter((name) => !/^[A-Z]/.test(name)).sort().join(' ');
     export default (record, fleet) => fleet.log(names);`,
  );
  expect(log).toEqual([
    'console decodeURI decodeURIComponent encodeURI encodeURIComponent escape eval globalThis isFinite isNaN parseFloat parseInt undefined unescape',
  ]);
});

it('what one action leaves behind reaches no other action', async () => {
  const { error } = await runBody(
    `globalThis.left = 'behind'; Object.prototype.polluted = 1; Array.prototype.map = () => 'mapped';
     JSON.stringify = () => 'text'; globalThis.console = undefined; Object.freeze(Object.prototype);
     Function.prototype.call = () => {}; globalThis.Promise = undefined;`,
  );
  expect(error).toBeUndefined();
  await expectWell();
});

/** Attempts of an action to change the language that the realm's own side of the API is written in. */
const confusions = [
  `Promise.prototype.then = function () { for (const one of arguments) try { one() } catch {} return this }`,
  `Promise.prototype.constructor = class { constructor(give) { give(() => {}, () => {}) } }; Promise.resolve = () => 1`,
  `globalThis.Promise = class { then() {} }`,
  `JSON.parse = () => ({ evil: 1 }); JSON.stringify = () => '["LOCK000001","evil"]\\n{}\\nmore'`,
  `Array.prototype[Symbol.iterator] = function* () { yield 'EVIL000001' }; Array.isArray = () => true`,
  `Array.prototype.toJSON = () => ['EVIL00000', 'x\\ny', { ttlSeconds: -1 }]`,
  `Object.prototype.toJSON = () => 'evil'; String.prototype.toJSON = () => 3`,
  `Object.defineProperty(Object.prototype, 'then', { get() { return (give) => give('evil') } })`,
  `for (const k of ['0', '1', 'resolve', 'reject', 'payload', 'msg', 'code'])
     Object.defineProperty(Object.prototype, k, { get() { return 'evil' }, set() {} })`,
  `String.prototype.slice = () => 'evil'; String.prototype.split = () => []; String.prototype.toString = () => 'evil'`,
  `Function.prototype.call = Function.prototype.apply = Function.prototype.bind = () => 'evil'; Reflect.apply = () => 'evil'`,
  `Error.prototype.toString = () => { throw 1 }; Object.defineProperty(Error.prototype, 'stack', { get() { throw 1 } });
   Object.defineProperty(Error, Symbol.hasInstance, { value: () => true })`,
  `globalThis.String = globalThis.Error = globalThis.TypeError = globalThis.InternalError = () => 'evil'`,
  `Object.setPrototypeOf(Object.getPrototypeOf(async () => {}), null); Object.freeze = () => ({ evil: 1 })`,
];

it.each(confusions)('confuses nobody but itself: %s', async (confusion) => {
  const code = `export default async (record, fleet) => {
    try { ${confusion} } catch {}
    try { fleet.send('LOCK000001', 'x', { n: 1 }) } catch {}
    try { await fleet.device('LOCK000001') } catch {}
    try { fleet.state.set('k', { v: 1 }) } catch {}
    try { fleet.log('a', { b: 1 }) } catch {}
    try { fleet.send(1) } catch {}
  }`;
  for (const time of ['first', 'again']) {
    const { error, sends, writes, log } = await run(code, { key: `confused ${confusion}` });
    if (error !== undefined) expect(typeof error.msg, time).toBe('string');
    for (const { to, name, payload } of sends) {
      expect(to).toEqual({ devices: ['LOCK000001'] });
      expect(name).toBe('x');
      expect(JSON.parse(payload)).toBeTypeOf('object');
    }
    for (const { key, value } of writes) expect([key, typeof JSON.parse(value ?? '')]).toContain('k');
    expect(log.every((line) => typeof line === 'string' && !line.includes('\n'))).toBe(true);
  }
  await expectWell();
});

const bombs: [name: string, body: string, codes: RunErrorCode[]][] = [
  ['an endless loop', 'for (;;);', ['cpu_time_exceeded']],
  ['one that catches its end', 'for (;;) try { for (;;); } catch {}', ['cpu_time_exceeded']],
  ['one in finally', 'try { for (;;); } finally { for (;;); }', ['cpu_time_exceeded']],
  ['an endless chain of promises', 'for (;;) await 0;', ['cpu_time_exceeded']],
  [
    'a growing chain of promises',
    'const f = () => Promise.resolve().then(f); await f();',
    ['cpu_time_exceeded', 'memory_exceeded'],
  ],
  [
    'chains that catch',
    'const f = async () => { for (;;) try { await f2() } catch {} }; const f2 = async () => { for (;;); }; f(); f(); await f();',
    ['cpu_time_exceeded'],
  ],
  ['a catastrophic regular expression', `/^(a+)+$/.test('a'.repeat(60) + '!');`, ['cpu_time_exceeded']],
  [
    'a catastrophic regular expression that captures',
    `/^((a|a?)+)+\\1$/.test('a'.repeat(60) + '!');`,
    ['cpu_time_exceeded', 'memory_exceeded', 'threw'],
  ],
  ['a join that cannot be interrupted', `new Array(1e9) + '';`, ['cpu_time_exceeded']],
  [
    'a huge BigInt',
    'let b = 3n ** 100_000n; for (;;) b = (b * b) % (7n ** 900_000n);',
    ['cpu_time_exceeded', 'memory_exceeded', 'threw'],
  ],
  [
    'digits of a huge BigInt',
    '(7n ** (3n ** 12n)).toString(); for (;;) (7n ** (3n ** 12n)).toString();',
    ['cpu_time_exceeded', 'memory_exceeded', 'threw'],
  ],
  ['arrays', 'const all = []; for (;;) all.push(new Array(10_000).fill(all));', ['memory_exceeded']],
  [
    'texts',
    `const all = []; for (let n = 0; ; n += 1) all.push((n + 'x').repeat(100_000));`,
    ['memory_exceeded'],
  ],
  ['typed arrays', 'const all = []; for (;;) all.push(new Uint8Array(1e6));', ['memory_exceeded']],
  ['one typed array', 'new Uint8Array(2 ** 31 - 1);', ['memory_exceeded', 'threw']],
  [
    'promises',
    'const all = []; for (;;) all.push(new Promise(() => {}));',
    ['memory_exceeded', 'cpu_time_exceeded'],
  ],
  [
    'memory and catching',
    'const all = []; for (;;) try { all.push(new Array(10_000).fill(1)); } catch {}',
    ['cpu_time_exceeded', 'memory_exceeded'],
  ],
  [
    'closures over memory',
    'let f = () => {}; for (;;) { const g = f, a = [1, 2, 3]; f = () => [g, a]; }',
    ['memory_exceeded'],
  ],
  [
    'a JSON of much',
    `const a = []; for (let n = 0; n < 3e5; n += 1) a.push([n]); fleet.send('LOCK000001', 'x', { a });`,
    ['invalid_call', 'memory_exceeded', 'cpu_time_exceeded'],
  ],
  ['endless recursion', 'const f = () => f() + 1; f();', ['stack_exceeded']],
  [
    'recursion through toString',
    'const a = []; a.toString = () => String([a]); String(a);',
    ['stack_exceeded'],
  ],
  ['recursion through a getter', 'const o = { get x() { return this.x; } }; o.x;', ['stack_exceeded']],
  [
    'recursion through JSON',
    `let o = {}; for (let n = 0; n < 1e5; n += 1) o = { o }; JSON.stringify(o);`,
    ['stack_exceeded', 'cpu_time_exceeded', 'threw'],
  ],
  [
    'recursion through proxies',
    'let p = {}; for (let n = 0; n < 1e5; n += 1) p = new Proxy(p, {}); p.x;',
    ['stack_exceeded', 'memory_exceeded'],
  ],
  ['nested source', `eval('('.repeat(1e5));`, ['stack_exceeded', 'threw']],
  ['nested JSON', `JSON.parse('['.repeat(1e5));`, ['stack_exceeded', 'threw']],
  ['a nested regular expression', `new RegExp('(?:'.repeat(1e5));`, ['stack_exceeded', 'threw']],
  ['mail without end', `for (;;) try { fleet.send('LOCK000001', 'x'); } catch {}`, ['too_many_mails']],
  [
    'mail for too many',
    `try { fleet.send(Array(101).fill('LOCK000001'), 'x'); } catch {}`,
    ['too_many_mails'],
  ],
  ['mail for nobody without end', `for (;;) try { fleet.send([], 'x'); } catch {}`, ['too_many_mails']],
  [
    'state without end',
    `for (let n = 0; ; n += 1) try { fleet.state.set('k' + n, n); } catch {}`,
    ['state_full'],
  ],
  ['lookups without end', `for (;;) try { fleet.device('LOCK000001'); } catch {}`, ['too_many_reads']],
  [
    'lookups without end, one at a time',
    `for (;;) try { await fleet.device('LOCK000001'); } catch {}`,
    ['too_many_reads'],
  ],
  [
    'keys read without end',
    `for (let n = 0; ; n += 1) await fleet.state.get('k' + n).catch(() => {});`,
    ['too_many_reads'],
  ],
  ['lines without end', `for (;;) fleet.log('x'.repeat(10_000));`, ['cpu_time_exceeded']],
  ['what never settles', 'await new Promise(() => {});', ['never_settled']],
  [
    'what never settles after an answer',
    `await fleet.device('LOCK000001'); await new Promise(() => {});`,
    ['never_settled'],
  ],
  ['a thenable that never does', 'return { then() {} };', ['never_settled']],
  [
    'an error that never ends',
    'throw { toString() { for (;;); }, toJSON() { for (;;); } };',
    ['cpu_time_exceeded'],
  ],
];

it.each(bombs)('is ended, and the thread goes on: %s', async (_, body, codes) => {
  // A body that is to meet another bound must not meet this one before it on a slow machine.
  const cpuMilliseconds = codes.includes('cpu_time_exceeded') ? 100 : 20_000;
  const limits = { cpuMilliseconds, memoryBytes: 8_388_608 };
  const { error, sends, log } = await runBody(body, { limits });
  expect(codes).toContain(error?.code);
  expect(sends).toEqual([]);
  expect(log.length).toBeLessThanOrEqual(101);
  await expectWell();
});

it('a loop at the top of a module is ended, also when it is compiled', async () => {
  const limits = { cpuMilliseconds: 150, wallMilliseconds: 30_000 };
  expect((await run('for (;;);', { limits })).error?.code).toBe('cpu_time_exceeded');
  expect(await pool.load({ code: 'for (;;);', name: 'endless' }, { ...usual, ...limits })).toMatchObject({
    code: 'cpu_time_exceeded',
  });
  await expectWell();
});

it('an answer that does not come ends the run at its wall time', async () => {
  const { error } = await runBody(`await fleet.device('LOCK000001');`, {
    limits: { wallMilliseconds: 300 },
    answer: () => new Promise(() => {}),
  });
  expect(error).toEqual({ code: 'wall_time_exceeded', msg: 'The run took more than 300 ms.' });
  await expectWell();
});

it('waiting for an answer does not count as computing', async () => {
  const { error, cpuMilliseconds, wallMilliseconds } = await runBody(`await fleet.device('LOCK000001');`, {
    limits: { cpuMilliseconds: 100 },
    answer: () => new Promise((resolve) => setTimeout(resolve, 300, 'null')),
  });
  expect(error).toBeUndefined();
  expect(wallMilliseconds).toBeGreaterThan(290);
  expect(cpuMilliseconds).toBeLessThan(wallMilliseconds);
});

it('a log is kept up to its bounds, with nothing in it that a terminal obeys', async () => {
  const { log } = await runBody(
    `fleet.log('\\u001b[2J\\r\\n\\u202e\\u0000 \\ud800', 'é😀');
     for (let n = 0; n < 150; n += 1) fleet.log('x'.repeat(5_000));`,
  );
  expect(log).toHaveLength(101);
  expect(log[0]).toBe('\\u{1b}[2J\\r\\n\\u{202e}\\u{0} \\u{d800} é😀');
  expect(log[99]).toBe(`${'x'.repeat(1_023)}…`);
  expect(log[100]).toBe('… 51 more lines were left out.');
});

it('what is to be sent counts as memory, for it is kept outside of the engine', async () => {
  const { error } = await runBody(
    `const text = 'x'.repeat(65_000); for (let n = 0; n < 40; n += 1) fleet.send('LOCK000001', 'x', { text });`,
    { limits: { memoryBytes: 2_097_152, payloadBytesMax: 65_536 } },
  );
  expect(error?.code).toBe('memory_exceeded');
});
