import { hash, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import Fastify, { type FastifyInstance, type FastifyRequest } from 'fastify';
import type { TlsFiles } from '../../../src/core/config/tls.ts';
import { deviceIdPattern, deviceSecretPattern, fleetIdPattern } from '../../../src/core/identity.ts';
import { datapointSchema, payloadSchema } from '../payload-schema.ts';

export type KeyOutcome = 'stored' | 'replayed' | 'reused';

/** Storage that the app keeps elsewhere. A device is named by fleet id and device id in one. */
export interface Store {
  /** SHA-256 of the secret; undefined for a device that there is not. */
  digest(device: string): Promise<Buffer | undefined>;
  digestAndMailbox(device: string): Promise<{ digest: Buffer; hasMail: boolean } | undefined>;
  /** Settles once it is on disk. */
  storeDatapoint(device: string, schema: string, payload: string): Promise<void>;
  /** The same, once for each key; 'reused' where another payload has it. Absent where keys are not kept. */
  storeDatapointOnce?(device: string, schema: string, payload: string, key: string): Promise<KeyOutcome>;
  noteSeen(lastSeenMs: ReadonlyMap<string, number>): Promise<void>;
}

/** Options passed to a server process at its start. */
export interface AppOptions {
  port: number;
  tls: TlsFiles;
  /** Path of the store's Unix socket, or the URL of its database. */
  socket: string;
}

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;
const keyAgeMsMax = 86_400_000;
const keySkewMsMax = 300_000;

/** Interval at which Fleetpost writes last-seen times; so they cost as little here. */
const flushMs = 5_000;

/** Says what is wrong with a request: Fastify answers with its status. */
export class Refused extends Error {
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

export const deviceOf = ({ headers }: FastifyRequest): string =>
  `${headers['x-fleet-id']}${headers['x-device-id']}`;

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

/** A UUIDv7 of the last day, as Fleetpost takes it. */
function keyOf({ headers }: FastifyRequest): string | undefined {
  const { 'idempotency-key': key } = headers;
  if (key === undefined) return undefined;
  const timeMs =
    typeof key === 'string' && uuidPattern.test(key)
      ? Number.parseInt(key.slice(0, 8) + key.slice(9, 13), 16)
      : Number.NaN;
  const ageMs = Date.now() - timeMs;
  if (!(ageMs <= keyAgeMsMax && ageMs >= -keySkewMsMax))
    throw new Refused(400, 'The Idempotency-Key is not a recent UUIDv7.');
  return String(key);
}

function check({ secret }: Shown, digest: Buffer | undefined): void {
  if (digest === undefined || !timingSafeEqual(hash('sha256', secret, 'buffer'), digest)) {
    throw new Refused(401, 'The credentials were not accepted.');
  }
}

/** Headers of every answer. */
export const answerHeaders = { 'cache-control': 'no-store', 'content-type': 'application/json' };

/** Adds routes whose requests `authenticate` lets through, before their body is read. */
type AddRoutes = (app: FastifyInstance, authenticate: (request: FastifyRequest) => Promise<void>) => void;

/**
 * Heartbeat, datapoint and what `addRoutes` adds, as a team would write them that knows its tools, with Fleetpost's
 * checks and promises.
 */
export async function serveApp(
  store: Store,
  { port, tls }: AppOptions,
  addRoutes?: AddRoutes,
): Promise<void> {
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

  const authenticate = async (request: FastifyRequest): Promise<void> => {
    const shown = credentialsOf(request);
    check(shown, await store.digest(shown.device));
    seen.set(shown.device, Date.now());
  };

  app.post('/v1/heartbeat', async (request, reply) => {
    const shown = credentialsOf(request);
    const found = await store.digestAndMailbox(shown.device);
    check(shown, found?.digest);
    seen.set(shown.device, Date.now());
    reply.code(201).headers(answerHeaders).header('x-messages-available', String(found?.hasMail));
    return '{"ok":true}';
  });

  app.post(
    `/v1/datapoint/${datapointSchema}`,
    { schema: { body: payloadSchema }, onRequest: authenticate },
    async (request, reply) => {
      const key = keyOf(request);
      const datapoint = [deviceOf(request), datapointSchema, JSON.stringify(request.body)] as const;
      if (key === undefined) await store.storeDatapoint(...datapoint);
      else {
        const outcome = await store.storeDatapointOnce?.(...datapoint, key);
        if (outcome === undefined) throw new Refused(400, 'No Idempotency-Key is taken here.');
        if (outcome === 'reused') throw new Refused(400, 'The Idempotency-Key was used for another request.');
        if (outcome === 'replayed') reply.header('idempotent-replayed', 'true');
      }
      reply.code(201).headers(answerHeaders);
      return '{"ok":true}';
    },
  );
  addRoutes?.(app, authenticate);

  await app.listen({ host: '127.0.0.1', port });
  console.log('ready');
}
