import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { ApiError, type ErrorCode } from '../../../../src/core/errors.ts';
import type { SchemaText } from '../../../../src/declarations/fleet.ts';
import { Registry } from '../../../../src/declarations/registry.ts';
import { SchemaChecker } from '../../../../src/declarations/schema-checks/schema-checker.ts';
import { verifyRegistry } from '../../../../src/declarations/verify.ts';
import type { ActionDraft, ActionVersion } from '../../../../src/features/actions/declaration/action.ts';
import {
  checkDraft,
  checkPayloadFilter,
  type DraftLimits,
} from '../../../../src/features/actions/declaration/action-draft.ts';
import { actionTable, versionTable } from '../../../../src/features/actions/declaration/action-records.ts';
import { Actions } from '../../../../src/features/actions/declaration/actions.ts';
import { verifyDeclaredActions } from '../../../../src/features/actions/verify.ts';
import { registryTables } from '../../../../src/maintenance/environments.ts';
import { DatabaseFile } from '../../../../src/storage/lmdb/environment/database-file.ts';
import type { Environment } from '../../../../src/storage/lmdb/environment/environment.ts';
import { Findings } from '../../../../src/storage/tables/findings.ts';
import { schemaCheckThread } from '../../../harness/features/schema-checks.ts';
import { temporaryFolder } from '../../../harness/server/server.ts';
import { openEnvironment } from '../../../harness/storage/environment.ts';

const folder = temporaryFolder();
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let folders = 0;
function newPath(): string {
  folders += 1;
  return join(folder, String(folders));
}

const fleetId = 'ACTFLEET';

/** Ends of the logs, when an action begins. */
const ends = [7];

interface Opened extends AsyncDisposable {
  environment: Environment;
  registry: Registry;
  actions: Actions;
}

const registryLimits = {
  settings: {
    current: {
      fleetsMax: 9,
      schemasPerFleetMax: 9,
      schemaStepsMax: 1_000,
      schemaPatternStatesMax: 10_000,
      schemaChecksMax: 9,
    },
  },
};

async function open(path: string, actionsPerFleetMax = 100): Promise<Opened> {
  const environment = environmentOf(path, registryTables);
  const registry = new Registry(environment, registryLimits);
  const actions = new Actions(environment, registry, {
    settings: { current: { actionsPerFleetMax } },
  });
  if (registry.snapshots().length === 0) await registry.createFleet({ fleetId, name: '', createdAtMs: 1 });
  const close = async (): Promise<void> => {
    await actions.close();
    await registry.close();
  };
  return { environment, registry, actions, [Symbol.asyncDispose]: close };
}

function environmentOf(path: string, tables: readonly string[]): Environment {
  return openEnvironment(path, tables);
}

function verify(path: string): { actions: number; findings: readonly string[] } {
  const file = new DatabaseFile(path);
  const findings = new Findings(20);
  const registry = { part: 'registry', tables: file.tables(), findings, onRecord: () => {} };
  const { fleets } = verifyRegistry(registry);
  const actions = verifyDeclaredActions(registry, fleets);
  file.close();
  return { actions, findings: findings.sentences };
}

const draft: ActionDraft = {
  language: 'javascript',
  source: 'export default async () => {};',
  on: [{ kind: 'message', schema: 'opened' }],
  filter: {},
  tests: [],
};
const code = (text: string): Omit<ActionVersion, 'number' | 'createdAtMs'> => ({
  ...draft,
  source: text,
  code: text,
});

async function codeOf(call: () => unknown): Promise<ErrorCode | undefined> {
  try {
    await call();
    return undefined;
  } catch (error) {
    if (error instanceof ApiError) return error.code;
    throw error;
  }
}

it('actions, their versions and which of them runs are there when the folder is opened again', async () => {
  const path = newPath();
  let id = '';
  {
    await using opened = await open(path);
    const { actions } = opened;
    const first = await actions.put(fleetId, 'lock-check', code('1'), ends, { runsPerSecondMax: 5 });
    expect(first).toMatchObject({
      isNew: true,
      action: { enabled: true, begin: { logEnds: ends }, version: 1, runsPerSecondMax: 5 },
    });
    id = first.action.id;
    const again = await actions.put(fleetId, 'lock-check', code('2'), [8], { enabled: false });
    expect(again).toMatchObject({
      isNew: false,
      action: { id, enabled: false, begin: first.action.begin, version: 2, runsPerSecondMax: 5 },
    });
    await actions.put(fleetId, 'another', code('A'), ends);
    await actions.rollback(fleetId, 'lock-check', 1);
    await actions.change(fleetId, 'lock-check', { enabled: true, runsPerSecondMax: null }, [9]);
  }
  await using opened = await open(path);
  const { actions } = opened;
  expect(actions.list(fleetId).map(({ name }) => name)).toEqual(['another', 'lock-check']);
  expect(actions.all()).toEqual(actions.list(fleetId));
  const action = actions.get(fleetId, 'lock-check');
  expect(action).toMatchObject({ id, fleetId, enabled: true, begin: { logEnds: [9] }, version: 1 });
  expect(action).not.toHaveProperty('runsPerSecondMax');
  expect(action.versions.map(({ number }) => number)).toEqual([1, 2]);
  expect(actions.current(action)).toMatchObject({ number: 1, code: '1' });
  expect(actions.version(fleetId, 'lock-check', 2)).toMatchObject({ number: 2, code: '2' });
  expect((await actions.put(fleetId, 'lock-check', code('3'), ends)).action.version).toBe(3);
});

it('what was put is read back to the letter, whatever its members are called', async () => {
  const path = newPath();
  const odd = {
    ...code('"\u0000\ud800"'),
    filter: { payload: JSON.parse('{"properties":{"__proto__":{"type":"string"},"toString":true}}') },
  };
  {
    await using opened = await open(path);
    await opened.actions.put(fleetId, 'odd', odd, ends);
  }
  await using opened = await open(path);
  const version = opened.actions.version(fleetId, 'odd', 1);
  expect(version.source).toBe(odd.source);
  expect(JSON.stringify(version.filter)).toBe(JSON.stringify(odd.filter));
  // In memory is what runs, alone.
  const { createdAtMs, number, language, on, filter } = version;
  expect(opened.actions.current(opened.actions.get(fleetId, 'odd'))).toEqual({
    ...{ createdAtMs, number, language, on, filter },
    code: version.code,
  });
});

it('the newest versions are kept, and an older one that runs until the next is put', async () => {
  const path = newPath();
  await using opened = await open(path);
  const { actions } = opened;
  const from = (first: number) => Array.from({ length: 10 }, (_, index) => first + index);
  for (let n = 1; n <= 11; n += 1) await actions.put(fleetId, 'a', code(String(n)), ends);
  expect(actions.get(fleetId, 'a').versions.map(({ number }) => number)).toEqual(from(2));
  expect(await codeOf(() => actions.version(fleetId, 'a', 1))).toBe('action_version_not_found');
  expect(await codeOf(() => actions.rollback(fleetId, 'a', 1))).toBe('action_version_not_found');
  expect((await actions.rollback(fleetId, 'a', 2)).version).toBe(2);
  expect(actions.version(fleetId, 'a', 2).code).toBe('2');
  const { action } = await actions.put(fleetId, 'a', code('12'), ends);
  expect(action).toMatchObject({ version: 12 });
  expect(action.versions.map(({ number }) => number)).toEqual(from(3));
  expect(opened.environment.sizeOf('actionVersions').records).toBe(10);
});

it('an action that is deleted leaves nothing, and is another when it is put again', async () => {
  const path = newPath();
  await using opened = await open(path);
  const { actions, environment } = opened;
  const first = await actions.put(fleetId, 'a', code('1'), ends);
  await actions.put(fleetId, 'a', code('2'), ends);
  await actions.delete(fleetId, 'a');
  expect(environment.sizeOf('actions').records + environment.sizeOf('actionVersions').records).toBe(0);
  expect(await codeOf(() => actions.get(fleetId, 'a'))).toBe('action_not_found');
  expect(await codeOf(() => actions.delete(fleetId, 'a'))).toBe('action_not_found');
  const second = await actions.put(fleetId, 'a', code('1'), ends);
  expect(second).toMatchObject({ isNew: true, action: { version: 1 } });
  expect(second.action.id).not.toBe(first.action.id);
  expect(await codeOf(() => actions.current(first.action))).toBe('action_not_found');
});

it('no fleet has more actions than it may, even when they are put at the same time', async () => {
  await using opened = await open(newPath(), 2);
  const { actions } = opened;
  const names = ['a', 'b', 'c', 'a'];
  const codes = await Promise.all(
    names.map((name) => codeOf(() => actions.put(fleetId, name, code('1'), ends))),
  );
  expect(codes).toEqual([undefined, undefined, 'limit_reached', undefined]);
  expect(actions.get(fleetId, 'a').version).toBe(2);
  expect(await codeOf(() => actions.put('NOFLEET1', 'a', code('1'), ends))).toBe('fleet_not_found');
  expect(await codeOf(() => actions.list('NOFLEET1'))).toBe('fleet_not_found');
  expect(await codeOf(() => actions.put(fleetId, '../a', code('1'), ends))).toBe('invalid_action');
});

it('verify reads every action and version, and finds what does not belong together', async () => {
  const path = newPath();
  const write = async (edit: (opened: Opened, id: string) => void): Promise<void> => {
    await using opened = await open(path);
    const { id } = opened.actions.get(fleetId, 'a');
    await opened.environment.write(() => edit(opened, id));
  };
  {
    await using opened = await open(path);
    await opened.actions.put(fleetId, 'a', code('1'), ends);
    await opened.actions.put(fleetId, 'a', code('2'), ends);
    await opened.actions.put(fleetId, 'b', code('1'), ends);
  }
  expect(verify(path)).toEqual({ actions: 2, findings: [] });
  await write(({ environment }, id) => {
    environment.table('actionVersions').removeSync(versionTable.key.encode([id, 1]));
    environment
      .table('actionVersions')
      .putSync(versionTable.key.encode([id, 9]), Buffer.from('{"number":9}'));
  });
  expect(verify(path).findings.join('\n')).toMatch(/does not decode[\s\S]*of action a is missing/);
  await write(({ environment }) => {
    environment.table('actions').putSync(actionTable.key.encode([fleetId, 'b']), Buffer.of(1, 9));
  });
  const { findings } = verify(path);
  expect(findings.join('\n')).toMatch(/registry, actions: key \w+ does not decode/);
  expect(findings.join('\n')).toMatch(/is of no action that has it/);
  const environment = environmentOf(path, registryTables);
  const registry = new Registry(environment, registryLimits);
  const limits = { settings: { current: { actionsPerFleetMax: 9 } } };
  expect(() => new Actions(environment, registry, limits)).toThrow(/action "b" of fleet "ACTFLEET".* backup/);
  await registry.close();
});

const limits: DraftLimits = {
  bodyBytesMax: 100,
  schemaBytesMax: 1_000,
  settings: {
    current: {
      actionMailsMax: 10,
      actionStateKeysMax: 10,
      actionStateValueBytesMax: 100,
    },
  },
};
const checker = new SchemaChecker(registryLimits.settings, schemaCheckThread);
afterAll(() => checker.close());

const schemas: SchemaText[] = [
  { kind: 'message', name: 'opened', text: '{}' },
  { kind: 'datapoint', name: 'temperature', text: '{}' },
  { kind: 'mail', name: 'lock_check', text: '{}' },
];
const device = 'SENSOR0001';
const deep = JSON.parse(`{"a":${'['.repeat(30_000)}${']'.repeat(30_000)}}`);
const large = { a: 'x'.repeat(100) };
const record = { device, payload: {} };
/** As long as they may be. */
const many = Object.fromEntries(
  Array.from({ length: 10 }, (_, at) => [`${at}${'€'.repeat(127)}`, 'x'.repeat(90)]),
);
const mail = { to: 'LOCK000001', name: 'm'.repeat(255), payload: { a: 'x'.repeat(90) } };

it('a draft that uses all there is passes', () => {
  const full: ActionDraft = {
    ...draft,
    on: [
      { kind: 'message', schema: 'opened' },
      { kind: 'datapoint', schema: 'temperature' },
    ],
    filter: { devices: [device], tags: ['hall'], payload: { required: ['floor'] } },
    tests: [
      { record: { device, kind: 'datapoint', name: 'temperature', payload: { celsius: 3 } } },
      { record, mails: [{ to: 'LOCK000001', name: 'lock_check', payload: {} }] },
    ],
  };
  expect(() => checkDraft(full, schemas, limits)).not.toThrow();
});

const refusals: [what: string, draft: Partial<ActionDraft>, message: RegExp][] = [
  ['a source that is too large', { source: 'é'.repeat(131_073) }, /262144 bytes/],
  ['no trigger', { on: [] }, /1 to 32/],
  ['too many triggers', { on: Array(33).fill(draft.on[0]) }, /1 to 32/],
  ['a trigger twice', { on: [...draft.on, ...draft.on] }, /message schema opened is named twice/],
  ['a schema name', { on: [{ kind: 'message', schema: 'a b' }] }, /trigger 1 has another/],
  ['a schema that is not there', { on: [{ kind: 'message', schema: 'opend' }] }, /no message schema opend/],
  ['one of another kind', { on: [{ kind: 'datapoint', schema: 'opened' }] }, /no datapoint schema opened/],
  ['a trigger of mail', { on: [{ kind: 'mail' as 'message', schema: 'lock_check' }] }, /neither/],
  ['no device', { filter: { devices: [] } }, /1 to 1000/],
  ['too many devices', { filter: { devices: Array(1_001).fill(device) } }, /1 to 1000/],
  ['a device id', { filter: { devices: ['short'] } }, /10 letters and digits; the filter/],
  ['no tag', { filter: { tags: [] } }, /1 to 32/],
  ['an empty tag', { filter: { tags: [''] } }, /1 to 64/],
  ['a long tag', { filter: { tags: ['x'.repeat(65)] } }, /1 to 64/],
  ['what is no schema', { filter: { payload: { type: 'thing' } } }, /filter of payloads.*JSON Schema/],
  [
    'a filter that costs',
    { filter: { payload: { items: { pattern: '(a|b)*a(a|b){900}$' } } } },
    /schemaStepsMax/,
  ],
  ['a deep filter', { filter: { payload: deep } }, /nested too deeply/],
  ['too many tests', { tests: Array(21).fill({ record }) }, /at most 20/],
  [
    'tests that are too large together',
    { tests: Array(20).fill({ record, state: many, stateAfter: many, mails: Array(10).fill(mail) }) },
    /at most 262144 bytes/,
  ],
  ['a test of no device', { tests: [{ record: { ...record, device: '' } }] }, /the record of test 1/],
  [
    'a large record',
    { tests: [{ record }, { record: { device, payload: large } }] },
    /record of test 2 is larger/,
  ],
  ['a deep record', { tests: [{ record: { device, payload: deep } }] }, /nested too deeply/],
  [
    'a mail to nobody',
    { tests: [{ record, mails: [{ to: 'x', name: 'a', payload: {} }] }] },
    /mail of test 1/,
  ],
  ['a large mail', { tests: [{ record, mails: [{ to: device, name: 'a', payload: large }] }] }, /is larger/],
  [
    'too many mails',
    { tests: [{ record, mails: Array(11).fill({ to: device, name: 'a', payload: {} }) }] },
    /actionMailsMax/,
  ],
];

it.each(refusals)('a draft is refused for %s, in a sentence', async (_, change, message) => {
  const check = async () => {
    checkDraft({ ...draft, ...change }, schemas, limits);
    await checkPayloadFilter(fleetId, { ...draft, ...change }, checker);
  };
  const refusal = { code: 'invalid_action', message: expect.stringMatching(message) };
  await expect(check()).rejects.toMatchObject(refusal);
});
