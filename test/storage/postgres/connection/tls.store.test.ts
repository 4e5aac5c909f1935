/** A database behind TLS. */

import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../../../../src/device/simulator/run/free-port.ts';
import { Postgres, patiently } from '../../../harness/postgres/postgres.ts';
import { makeCertificate } from '../../../harness/server/certificate.ts';
import { ShardNode } from '../shard-node.ts';

const user = 'hiddenuser';
const database = 'hiddendatabase';
const password = `hidden${randomBytes(12).toString('hex')}`;

describe('a database behind TLS', () => {
  let postgres: Postgres;
  let port: number;
  let authority: string;
  let other: string;

  beforeAll(async () => {
    port = await freePort();
    postgres = await Postgres.start(['listen_addresses=localhost'], port);
    const [own, another] = [await makeCertificate('database'), await makeCertificate('another')];
    authority = postgres.write('authority.pem', own.cert);
    other = postgres.write('other.pem', another.cert);
    postgres.write('data/server.crt', own.cert);
    postgres.write('data/server.key', own.key);
    postgres.write(
      'data/pg_hba.conf',
      'local all postgres trust\nhostssl all all 127.0.0.1/32 scram-sha-256\nhostssl all all ::1/128 scram-sha-256\n',
    );
    await postgres.run(
      `CREATE ROLE ${user} LOGIN PASSWORD '${password}'`,
      `CREATE DATABASE ${database} OWNER ${user}`,
      'ALTER SYSTEM SET ssl = on',
      'SELECT pg_reload_conf()',
    );
    // The answer does not wait for it: new sessions have the setting once it is done.
    const isOn = `DO $$ BEGIN IF current_setting('ssl') <> 'on' THEN RAISE 'not yet'; END IF; END $$`;
    await patiently(() => postgres.run(isOn));
  });
  afterAll(() => postgres[Symbol.asyncDispose]());

  const urlOf = (parameters: string, host = 'localhost', secret = password) =>
    `postgres://${user}:${secret}@${host}:${port}/${database}?${parameters}`;

  it('is used where its certificate is of the right authority and name, and says nothing of its URL', async () => {
    await using node = await ShardNode.open(urlOf(`sslmode=verify-full&sslrootcert=${authority}`));
    expect(await node.ingest()).toBe('stored');
    // The listener for notices has its own connection.
    await postgres.run(
      `DO $$ BEGIN IF EXISTS (SELECT FROM pg_stat_activity a LEFT JOIN pg_stat_ssl s USING (pid)
        WHERE a.usename = '${user}' AND s.ssl IS NOT TRUE) THEN RAISE 'not encrypted'; END IF; END $$`,
    );
    await postgres.end();
    await expect(node.ingest()).rejects.toThrow('not available');
    await postgres.begin();
    await expect.poll(() => node.ingest().catch(() => 'not yet')).toBe('stored');
    expect(node.lines.length).toBeGreaterThan(0);
    expect(node.lines.join()).not.toContain('hidden');
  });

  it.each(['require', 'verify-ca'])('by its authority alone with sslmode=%s', async (mode) => {
    await using node = await ShardNode.open(urlOf(`sslmode=${mode}&sslrootcert=${authority}`, '127.0.0.1'));
    expect(await node.ingest()).toBe('stored');
  });

  it.each([
    ['of another authority', () => urlOf(`sslmode=verify-full&sslrootcert=${other}`)],
    ['of another authority, whatever its name', () => urlOf(`sslmode=verify-ca&sslrootcert=${other}`)],
    ['of no public authority', () => urlOf('sslmode=verify-full&sslrootcert=system')],
    ['of another name', () => urlOf(`sslmode=verify-full&sslrootcert=${authority}`, '127.0.0.1')],
  ])('is refused where its certificate is %s', async (_, url) => {
    await expectHidden(url());
  });

  it.each([
    [
      'a wrong password',
      () => urlOf(`sslmode=verify-full&sslrootcert=${authority}`, 'localhost', 'hiddenwrong'),
    ],
    ['no encryption', () => urlOf('sslmode=disable')],
    ['a name that nobody knows', () => urlOf('sslmode=disable', 'hidden.invalid')],
    [
      'no password',
      () => `postgres://${user}@localhost:${port}/${database}?sslmode=verify-full&sslrootcert=${authority}`,
    ],
  ])('with %s says nothing of the URL', async (_, url) => {
    await expectHidden(url());
  });

  /** That it cannot be opened, and that nothing that is said of it is of the URL. */
  async function expectHidden(url: string): Promise<void> {
    const lines: string[] = [];
    const warnings: string[] = [];
    const note = (warning: Error): void => void warnings.push(String(warning));
    process.on('warning', note);
    try {
      const error: unknown = await ShardNode.open(url, {}, lines).then(
        () => 'opened',
        (reason) => reason,
      );
      expect(error).toMatchObject({ code: 'unavailable' });
      expect(JSON.stringify([error, String(error), lines])).not.toContain('hidden');
      expect(lines).toHaveLength(1);
    } finally {
      process.off('warning', note);
    }
    expect(warnings).toEqual([]);
  }
});
