import { copyFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import {
  type ConfigKey,
  configDefault,
  configKeys,
  isReloadable,
} from '../../src/server/configuration/config.ts';
import { createFleet } from '../harness/devices/device.ts';
import { ask, expectError } from '../harness/devices/routes.ts';
import { shards, TestServer, temporaryFolder } from '../harness/server/server.ts';
import { until } from '../harness/server/vitals.ts';

const file = join(temporaryFolder(), 'fleetpost.json');
const put = (config: object): void => writeFileSync(file, JSON.stringify(config));

it('SIGHUP takes what can change, names what cannot, and refuses a bad file whole', async () => {
  put({ mailboxMailsMax: 5 });
  await using server = await TestServer.start({ logLevel: 'info' }, undefined, { flags: ['--config', file] });
  const device = await (await createFleet(server)).createDevice();
  await device.sendMail();
  const reload = async (config: object | string, said: string): Promise<string> => {
    const length = server.stderr.length;
    if (typeof config === 'string') writeFileSync(file, config);
    else put(config);
    server.process.kill('SIGHUP');
    await until(() => server.stderr.slice(length).includes(said));
    return server.stderr.slice(length);
  };

  // Reached only by what every thread reads anew: the admin API, the log, a worker's limit of streams.
  const changed = {
    mailboxMailsMax: 1,
    streamsPerWorkerMax: 1,
    commitDelayMilliseconds: 7,
    bodyBytesMax: 2_048,
  };
  const said = await reload(changed, 'changed keys need a restart');
  expect(said).toContain('"keys":["commitDelayMilliseconds","bodyBytesMax"]');
  expect((await device.sendMail()).status).toBe(409);

  for (const [bad, reason] of [
    ['{"mailboxMailsMax":', 'cannot be read'],
    [{ mailboxMailsMax: 9, mailBoxes: 1 }, 'there is no key'],
    [{ mailboxMailsMax: 9, tlsCertFile: '/nowhere.pem', tlsKeyFile: '/nowhere.key' }, 'nowhere.pem'],
  ] as const) {
    expect(await reload(bad, 'nothing changed')).toContain(reason);
    expect((await device.sendMail()).status).toBe(409);
  }

  expect(await reload({ mailboxMailsMax: 9 }, 'configuration reloaded')).toContain('"mailboxMailsMax":9');
  expect((await device.sendMail()).status).toBe(201);
  expect(server.isRunning).toBe(true);
});

const certificate = {
  tlsCertFile: join(dirname(file), 'cert.pem'),
  tlsKeyFile: join(dirname(file), 'key.pem'),
};

/** Another valid value of a key. */
function otherValue(key: ConfigKey): string | number | boolean {
  const value = configDefault(key);
  switch (key) {
    case 'logLevel':
      return 'debug';
    case 'hostSuffix':
      return 'device.example.com';
    case 'publicUrl':
      return 'https://device.example.com';
    case 'tlsCertFile':
      return `${certificate.tlsCertFile}.copy`;
    case 'tlsKeyFile':
      return `${certificate.tlsKeyFile}.copy`;
    default:
      if (typeof value === 'boolean') return !value;
      return typeof value === 'number' ? value + (key === 'shutdownSeconds' ? -1 : 1) : 'example.com';
  }
}

it('SIGHUP changes every key that it can, on every thread', async () => {
  copyFileSync(process.env.TEST_CERT_FILE ?? '', certificate.tlsCertFile);
  copyFileSync(process.env.TEST_KEY_FILE ?? '', certificate.tlsKeyFile);
  put({ ...certificate, logLevel: 'info' });
  for (const path of Object.values(certificate)) copyFileSync(path, `${path}.copy`);
  // The environment would have the last word.
  const environment = { FLEETPOST_LOG_LEVEL: undefined, FLEETPOST_STALL_MILLISECONDS: undefined };
  await using server = await TestServer.start({}, undefined, { environment, flags: ['--config', file] });
  const device = await (await createFleet(server)).createDevice();
  const keys = configKeys.filter(isReloadable);
  const values = Object.fromEntries(keys.map((key) => [key, otherValue(key)]));
  put(values);
  server.process.kill('SIGHUP');
  await until(() => server.stderr.includes('configuration reloaded'));
  const line = server.stderr.split('\n').find((one) => one.includes('configuration reloaded')) ?? '';
  expect(JSON.parse(line).changed).toEqual(values);
  expect(server.stderr).not.toContain('need a restart');
  for (let worker = 0; worker < shards; worker += 1) {
    const answer = await ask(
      server,
      { method: 'POST', path: '/v1/heartbeat' },
      { ...device.credentials, Host: 'ANOTHER1.device.example.com' },
    );
    expectError(answer, 400, 'fleet_host_mismatch');
  }
});
