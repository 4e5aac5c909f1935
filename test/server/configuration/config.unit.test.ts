import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import {
  configDefault,
  configDescription,
  configKeys,
  environmentName,
  loadConfig,
} from '../../../src/server/configuration/config.ts';
import { withoutPasswords } from '../../../src/storage/config.ts';
import { temporaryFolder } from '../../harness/server/server.ts';

function file(content: string): string {
  const path = join(temporaryFolder(), 'config.json');
  writeFileSync(path, content);
  return path;
}

it('flags win over the environment, that over the file, that over defaults', () => {
  const path = file('{"listen":"127.0.0.1:1","admin":"127.0.0.1:2","data":"/file","hostSuffix":"a.example"}');
  const environment = { FLEETPOST_LISTEN: '127.0.0.1:3', FLEETPOST_DATA: '/environment' };
  const { values, sources } = loadConfig(path, environment, { data: '/flag' });
  expect(values).toMatchObject({
    data: '/flag',
    listen: '127.0.0.1:3',
    admin: '127.0.0.1:2',
    bodyBytesMax: 65_536,
  });
  expect(sources).toMatchObject({
    data: 'flag',
    listen: 'environment',
    admin: 'file',
    bodyBytesMax: 'default',
  });
});

it('the data folder of a file is relative to the file, of a flag or the environment to where one stands', () => {
  const path = file('{"data":"kept"}');
  expect(loadConfig(path, {}, {}).values.data).toBe(join(path, '..', 'kept'));
  expect(loadConfig(path, { FLEETPOST_DATA: 'here' }, {}).values.data).toBe('here');
  expect(loadConfig(path, {}, { data: 'here' }).values.data).toBe('here');
});

it('text from the environment takes the type of its key', () => {
  const { values } = loadConfig(undefined, { FLEETPOST_STRICT_STATUSES: 'true', FLEETPOST_SHARDS: '3' }, {});
  expect(values).toMatchObject({ strictStatuses: true, shards: 3 });
});

it.each([
  ['{"shards":0}', {}, /shards must be >= 1, not 0 \(from file\)/],
  ['{"shards":"two"}', {}, /shards must be integer/],
  ['{"shardz":2}', {}, /no key "shardz" \(from file\)\. Did you mean shards\?/],
  ['{"lisen":"a:1"}', {}, /no key "lisen" \(from file\)\. Did you mean listen\?/],
  ['{"zzzzzz":1}', {}, /no key "zzzzzz" \(from file\)\.$/],
  ['{}', { FLEETPOST_ADMIN: 'ftp://a' }, /admin must be HOST:PORT/],
  ['{"listen":"8443"}', {}, /listen must be HOST:PORT/],
  ['{"acmeListen":"0.0.0.0:99999"}', {}, /acmeListen must be HOST:PORT, with a port from 0 to 65535, not/],
  ['{"probe":"127.0.0.1:65536"}', {}, /probe must be HOST:PORT/],
  ['{"acmeContact":"mailto:mailto:you@example.com"}', {}, /acmeContact must be an e-mail address/],
  [
    '{"publicUrl":"http://a.example"}',
    {},
    /publicUrl must be an https:\/\/ URL of a host and perhaps a port, wi/,
  ],
  ['{"publicUrl":"https://a.example/devices"}', {}, /publicUrl must be .*, without a path, not "https/],
  ['{"publicUrl":"https://a.example:99999"}', {}, /publicUrl must be an https/],
  ['{"logLevel":"loud"}', {}, /logLevel must be one of/],
  ['[]', {}, /one JSON object/],
  ['{', {}, /cannot be read/],
  ['{}', { FLEETPOST_SHARDZ: '1' }, /no key for FLEETPOST_SHARDZ\. Did you mean FLEETPOST_SHARDS\?/],
  ['{}', { FLEETPOST_SHARDS: 'many' }, /shards must be integer.*from environment/],
  ['{}', { FLEETPOST_SHARDS: '' }, /shards must be integer, not ""/],
  ['{}', { FLEETPOST_SHARDS: 'x' }, /shards must be integer, not "x" \(from environment\)/],
  ['{}', { FLEETPOST_SHARDS: 'Infinity' }, /shards must be integer, not "Infinity"/],
  ['{"traceUrl":"127.0.0.1:4318"}', {}, /traceUrl must be a URL that begins with http:\/\/.*, not "127/],
])('refuses %s with %o, naming the key', (content, environment, message) => {
  expect(() => loadConfig(file(content), environment, {})).toThrow(message);
});

it('variables of the client commands are no keys of the server', () => {
  const environment = {
    FLEETPOST_TOKEN: 'FPT-a',
    FLEETPOST_FLEET: 'GARDEN01',
    FLEETPOST_CONTEXT: 'work',
    FLEETPOST_ADMIN: 'https://fleetpost.example:8444',
  };
  expect(loadConfig(undefined, environment, {}).sources.admin).toBe('default');
  const { values } = loadConfig(undefined, { FLEETPOST_ADMIN: '127.0.0.1:1' }, {});
  expect(values.admin).toBe('127.0.0.1:1');
});

it('a store names its engine and its databases, and no error repeats a password', () => {
  const shards = ['postgres://fleet:hush@one/a', 'postgres://fleet:hush@two/a?sslmode=verify-full'];
  const { values } = loadConfig(file(JSON.stringify({ store: { engine: 'postgres', shards } })), {}, {});
  expect(values.store).toEqual({ engine: 'postgres', shards });
  const shown = JSON.stringify(withoutPasswords(values.store));
  expect(shown).not.toContain('hush');
  expect(shown).toContain('postgres://fleet:***@one/a');
  const bad = [
    { engine: 'postgres' },
    { engine: 'postgres', shards: [] },
    { engine: 'postgres', shards: ['mysql://fleet:hush@one/a'] },
    { engine: 'lmdb', shards: ['postgres://fleet:hush@one/a'] },
    { engine: 'mongo', shards: ['postgres://fleet:hush@one/a'] },
    'postgres://fleet:hush@one/a',
    { engine: 'lmdb', hush: 1 },
  ];
  for (const store of bad) {
    const environment = { FLEETPOST_STORE: JSON.stringify(store) };
    expect(() => loadConfig(undefined, environment, {})).toThrow(/store[^\n]* it is \{"engine"/);
    expect(() => loadConfig(undefined, environment, {})).not.toThrow(/hush/);
  }
});

it('every key has a default within its bounds, a doc line and an environment name of its own', () => {
  const defaults = file(
    JSON.stringify(Object.fromEntries(configKeys.map((key) => [key, configDefault(key)]))),
  );
  expect(() => loadConfig(defaults, {}, {})).not.toThrow();
  for (const key of configKeys) {
    expect(configDefault(key)).toBeDefined();
    expect(configDescription(key).length).toBeGreaterThan(10);
  }
  expect(new Set(configKeys.map(environmentName)).size).toBe(configKeys.length);
});
