import { hash, randomUUID } from 'node:crypto';
import type { RecordableHistogram } from 'node:perf_hooks';
import pg from 'pg';
import { freePort } from '../../../src/device/simulator/run/free-port.ts';
import { certificate } from '../certificate.ts';
import { generateDevices } from '../devices.ts';
import { enqueue, type Mail } from '../mail-queue.ts';
import { Peer, type PeerOptions } from '../peer.ts';
import { missingPostgres, startPostgres, synchronousCommit } from '../postgres.ts';
import { startScript } from '../server-process.ts';
import type { Credentials, MailServer, Subject } from '../subject.ts';
import type { AppOptions } from './app.ts';
import type { AdminOptions } from './mail.ts';

const tables = `
  CREATE TABLE devices (device text PRIMARY KEY, digest bytea NOT NULL, seen timestamptz);
  CREATE TABLE mails (
    device text,
    id uuid,
    name text NOT NULL,
    payload text NOT NULL,
    acknowledged timestamptz,
    PRIMARY KEY (device, id)
  );
  CREATE INDEX waiting ON mails (device, id) WHERE acknowledged IS NULL;
  CREATE TABLE datapoints (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    device text NOT NULL,
    schema text NOT NULL,
    accepted timestamptz NOT NULL DEFAULT now(),
    payload text NOT NULL,
    key uuid
  );
  CREATE UNIQUE INDEX keys ON datapoints (device, key) WHERE key IS NOT NULL;`;

async function load(url: string, devices: readonly Credentials[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(tables);
  await client.query('INSERT INTO devices (device, digest) SELECT * FROM unnest($1::text[], $2::bytea[])', [
    devices.map(({ fleetId, deviceId }) => fleetId + deviceId),
    devices.map(({ secret }) => hash('sha256', secret, 'buffer')),
  ]);
  await client.query('ANALYZE');
  await client.end();
}

class FastifyOnPostgres extends Peer implements MailServer {
  readonly #admin: AdminOptions;

  constructor(admin: AdminOptions, options: PeerOptions) {
    super(options);
    this.#admin = admin;
  }

  enqueue(mails: readonly Mail[], latency?: RecordableHistogram): Promise<string[]> {
    const { port, token } = this.#admin;
    return enqueue([{ url: `http://127.0.0.1:${port}`, token }], mails, latency);
  }
}

/** One process of the app, as with Redis. */
export const fastifyPostgres: Subject<FastifyOnPostgres> = {
  name: 'Fastify + PostgreSQL',
  durability: synchronousCommit,
  missing: missingPostgres,
  async start({ devices: count, tls }) {
    const postgres = await startPostgres();
    const socket = await postgres.create();
    const devices = generateDevices(count);
    await load(socket, devices);
    const options: AppOptions = { port: await freePort(), tls: tls ?? (await certificate()), socket };
    const admin: AdminOptions = { port: await freePort(), token: randomUUID() };
    const app = await startScript(new URL('postgres-process.ts', import.meta.url), { ...options, admin });
    await app.firstLine;
    return new FastifyOnPostgres(admin, {
      ...options,
      devices,
      processes: [postgres, app],
      database: postgres,
      folder: postgres.folder,
    });
  },
};
