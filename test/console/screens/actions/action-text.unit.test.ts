import { expect, it } from 'vitest';
import { checkInTurn } from '../../../../src/console/editor/check-in-turn.ts';
import {
  actionProblem,
  deploymentBody,
  isSameAction,
  newAction,
  recordProblem,
  trialBodyText,
} from '../../../../src/console/screens/actions/action-text.ts';

const text = { ...newAction, on: ['datapoint:temperature'] };

it('a record is tried with the digits that its device sent', () => {
  const record = { device: 'PUMP07HALL', on: 'message:note', payload: '{"n": 9007199254740993, "x": 1.10}' };
  const body = trialBodyText(text, { record });
  expect(body).toContain('"payload":{"n": 9007199254740993, "x": 1.10}');
  expect(JSON.parse(body)).toMatchObject({
    record: { device: 'PUMP07HALL', kind: 'message', name: 'note' },
    draft: { language: 'typescript', on: [{ kind: 'datapoint', schema: 'temperature' }] },
  });
});

it('what is deployed is what is seen: every field is in the body', () => {
  expect(JSON.parse(deploymentBody(text, false, false))).toEqual({
    language: 'typescript',
    source: text.source,
    on: [{ kind: 'datapoint', schema: 'temperature' }],
    filter: { devices: null, tags: null, payload: null },
    tests: [],
  });
  const all = {
    ...text,
    tags: ['hall'],
    where: '{"required":["a"]}',
    rate: '5',
    isDisabled: true,
    tests: '',
  };
  expect(JSON.parse(deploymentBody(all, true, true))).toMatchObject({
    filter: { devices: null, tags: ['hall'], payload: { required: ['a'] } },
    runs_per_second_max: 5,
    enabled: false,
    force: true,
    tests: [],
  });
  expect(
    JSON.parse(deploymentBody({ ...text, rate: 'default' }, false, false)).runs_per_second_max,
  ).toBeNull();
});

it('what cannot be deployed or tried yet says why', () => {
  expect(actionProblem(text)).toBeUndefined();
  expect(actionProblem(newAction)).toMatch(/schema/);
  expect(actionProblem({ ...text, where: '[]' })).toMatch(/filter/);
  expect(actionProblem({ ...text, tests: '{}' })).toMatch(/list/);
  expect(actionProblem({ ...text, rate: '1.5' })).toMatch(/number/);
  expect(actionProblem({ ...text, source: 'x'.repeat(262_145) })).toMatch(/256 KiB/);
  expect(recordProblem({ device: 'PUMP', on: 'message:a', payload: '{}' })).toMatch(/10 letters/);
  expect(recordProblem({ device: 'PUMP07HALL', on: 'message:a', payload: '[]' })).toMatch(/object/);
});

it('a draft that says what the server has is none, in whatever order its JSON is written', () => {
  const written = { ...text, tests: '[{"mails":[],"record":{"a":1,"b":2}}]', where: '{ "a": {} }' };
  const stored = { ...text, tests: '[{"record":{"b":2,"a":1},"mails":[]}]', where: '{"a":{}}', base: 4 };
  expect(isSameAction(written, stored)).toBe(true);
  expect(isSameAction(written, { ...stored, source: '' })).toBe(false);
});

it('of texts that are typed while one is checked only the last is checked, and old answers are dropped', async () => {
  const asked: string[] = [];
  const answers: (() => void)[] = [];
  const check = checkInTurn((one) => {
    asked.push(one);
    return new Promise<string>((resolve) => answers.push(() => resolve(`${one} is fine`)));
  });
  const first = check('a');
  const others = [check('b'), check('c')];
  expect(asked).toEqual(['a']);
  answers[0]?.();
  expect(await first).toBeUndefined();
  expect(await others[0]).toBeUndefined();
  expect(asked).toEqual(['a', 'c']);
  answers[1]?.();
  expect(await others[1]).toBe('c is fine');
});
