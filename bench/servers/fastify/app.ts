import { hash, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import Fastify, { type FastifyRequest } from 'fastify';
import { deviceIdPattern, deviceSecretPattern, fleetIdPattern } from '../../../src/core/identity.ts';
import type { TlsFiles } from '../../../src/http/uws.ts';
import { datapointSchema, payloadSchema } from '../payload-schema.ts';

/** What the app keeps elsewhere. A device is named by fleet id and device id in one. */
export interface Store {
  /** SHA-256 of the secret; undefined for a device that there is not. */
  digest(device: string): Promise<Buffer | undefined>;
  digestAndMailbox(device: string): Promise<{ digest: Buffer; hasMail: boolean } | undefined>;
  /** Settles once it is on disk. */
  storeDatapoint(device: string, schema: string, payload: string): Promise<void>;
  noteSeen(lastSeenMs: ReadonlyMap<string, number>): Promise<void>;
}

/** What a server process is told at its start. */
export interface AppOptions {
  port: number;
  tls: TlsFiles;
  /** Path of the store's Unix socket, or of the folder it is in. */
  socket: string;
}

/** As often as Fleetpost writes last-seen times; so they cost as little here. */
const flushMs = 5_000;

class Refused extends Error {
  readonly statusCode: number;

  constructor(statusCode: number, message: string) {
    super(message);
    this.statusCode = statusCode;
  }
}

interface Shown {
  device: string;
  secret: string;
}

/** The three headers and their formats. */
function credentialsOf({ headers }: FastifyRequest): Shown {
  const { 'x-fleet-id': fleetId, 'x-device-id': deviceId, 'x-device-secret': secret } = headers;
  if (typeof fleetId !== 'string' || typeof deviceId !== 'string' || typeof secret !== 'string') {
    throw new Refused(400, 'X-Fleet-ID, X-Device-ID and X-Device-Secret are required.');
  }
  if (!fleetIdPattern.test(fleetId) || !deviceIdPattern.test(deviceId) || !deviceSecretPattern.test(secret)) {
    throw new Refused(400, 'A credential has the wrong format.');
  }
  return { device: fleetId + deviceId, secret };
}

function check({ secret }: Shown, digest: Buffer | undefined): void {
  if (digest === undefined || !timingSafeEqual(hash('sha256', secret, 'buffer'), digest)) {
    throw new Refused(401, 'The credentials were not accepted.');
  }
}

/** Heartbeat and datapoint as a team would write them that knows its tools, with Fleetpost's checks and promises. */
export async function serveApp(store: Store, { port, tls }: AppOptions): Promise<void> {
  const app = Fastify({
    https: { cert: readFileSync(tls.certFile), key: readFileSync(tls.keyFile) },
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false } },
  });
  let seen = new Map<string, number>();
  setInterval(() => {
    const notes = seen;
    seen = new Map();
    if (notes.size > 0) store.noteSeen(notes).catch((error: unknown) => app.log.error(error));
  }, flushMs);

  const headers = { 'cache-control': 'no-store', 'content-type': 'application/json' };
  app.post('/v1/heartbeat', async (request, reply) => {
    const shown = credentialsOf(request);
    const found = await store.digestAndMailbox(shown.device);
    check(shown, found?.digest);
    seen.set(shown.device, Date.now());
    reply.code(201).headers(headers).header('x-messages-available', String(found?.hasMail));
    return '{"ok":true}';
  });

  app.post(
    `/v1/datapoint/${datapointSchema}`,
    {
      schema: { body: payloadSchema },
      // Before the body is read, like there.
      async onRequest(request) {
        const shown = credentialsOf(request);
        check(shown, await store.digest(shown.device));
        seen.set(shown.device, Date.now());
      },
    },
    async (request, reply) => {
      const { 'x-fleet-id': fleetId, 'x-device-id': deviceId } = request.headers;
      await store.storeDatapoint(`${fleetId}${deviceId}`, datapointSchema, JSON.stringify(request.body));
      reply.code(201).headers(headers);
      return '{"ok":true}';
    },
  );

  await app.listen({ host: '127.0.0.1', port });
  console.log('ready');
}
