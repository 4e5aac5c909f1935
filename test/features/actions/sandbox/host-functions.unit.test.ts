import { expect, it } from 'vitest';
import { RunEffects } from '../../../../src/features/actions/sandbox/effects.ts';
import { HostCalls } from '../../../../src/features/actions/sandbox/host-call-port.ts';
import { callHost, type HostCaller } from '../../../../src/features/actions/sandbox/host-functions.ts';
import { limits } from './started-actions.ts';

it('a call that the code of an action has made up is refused, and changes nothing', () => {
  const effects = new RunEffects(limits);
  const ended: unknown[] = [];
  const caller: HostCaller = {
    run: 3,
    effects,
    hostCalls: new HostCalls(async () => 'null'),
    onDone: () => ended.push('done'),
    onFailed: (described) => ended.push(described),
  };
  const madeUp = [
    ...['', '\n', 'null\n', '{"name":"log"}\n', '[]\n', '["log"', '["log",3,['],
    ...['constructor', '__proto__', 'toString', 'none'].map((name) => `["${name}",3,[]]\n`),
    // Of a run that has ended, and of none.
    ...['2', '"3"', 'null'].map((run) => `["done",${run}]\n`),
    ...['"SENSOR0001"', '{}', '[["SENSOR0001"],"no spaces"]', '[]'].map((args) => `["send",3,${args}]\n{}`),
    '["send",3,["SENSOR0001","x"]]\n{"of":"two"}\n{}',
    `["set",3,["key","${'x'.repeat(100_000)}"]]\n1`,
    `["failed",3]\n"${'x'.repeat(100_000)}"`,
  ];
  for (const call of madeUp) {
    expect(JSON.parse(callHost(caller, call) ?? 'null')?.[0], call.slice(0, 80)).toBe('refused');
  }
  expect(callHost(undefined, '["done",3]\n')).toContain('The run that this belongs to has ended.');
  expect([effects.sends, effects.writes, effects.lines, ended]).toEqual([[], [], [], []]);
  expect(callHost(caller, '["log",3,["heard"]]\n')).toBeUndefined();
  expect(callHost(caller, '["done",3]\n')).toBeUndefined();
  expect([effects.lines, ended]).toEqual([['heard'], ['done']]);
});
