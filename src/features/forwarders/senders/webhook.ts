import { createHash, createHmac } from 'node:crypto';
import type { LookupFunction } from 'node:net';
import { Agent, buildConnector, request } from 'undici';
import type { StoredRecord } from '../../../domain/records/record.ts';
import { recordJson } from '../../records/record-line.ts';
import { isAnyHostAllowed } from '../declaration/forward-hosts.ts';
import type { Forwarder, SigningSecret, WebhookDestination } from '../declaration/forwarder.ts';
import { signingKey } from '../declaration/signing-secret.ts';
import {
  allowedLookup,
  errorCode,
  forbiddenAddressCode,
  forbiddenAddressReason,
  lookupOf,
} from './allowed-lookup.ts';
import { boundSocket, isTooMuchReceived } from './bounded-socket.ts';
import { LinkedAbort } from './linked-abort.ts';
import type { Outcome, Sender } from './sender.ts';

/**
 * Id of a batch, the same for the same records of the same forwarder, after a restart too, so that a receiver can
 * recognise a repeated batch.
 */
function batchId(forwarderId: string, records: readonly StoredRecord[]): string {
  const hash = createHash('sha256').update(forwarderId);
  for (const { id } of records) hash.update(id);
  return `msg_${hash.digest('base64url').slice(0, 32)}`;
}

/** Headers of Standard Webhooks, with a signature by every valid key, the current one first. */
function signatureHeaders(
  id: string,
  body: Buffer,
  secrets: readonly SigningSecret[],
  nowMs: number,
): Record<string, string> {
  const timestamp = String(Math.floor(nowMs / 1_000));
  const signatures = secrets
    .filter(({ untilMs }) => untilMs === undefined || untilMs > nowMs)
    .map(({ secret }) => {
      const hmac = createHmac('sha256', signingKey(secret) ?? '');
      return `v1,${hmac.update(`${id}.${timestamp}.`).update(body).digest('base64')}`;
    });
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures.join(' '),
  };
}

/** How much of an answer is read and discarded, so that its connection can be reused. */
const answerBytesMax = 65_536;
/** How much may arrive for one request: beside the body, its head, and what frames or encrypts it. */
const receivedBytesMax = 2 * answerBytesMax;

/**
 * Statuses about this body. Any other refusal is about the destination (a wrong path, an expired token) and applies
 * to all records, which wait until it is fixed.
 */
const refusals: ReadonlySet<number> = new Set([400, 413, 415, 422]);

/** POSTs every batch, signed according to Standard Webhooks, over reused connections. */
export class WebhookSender implements Sender {
  readonly #forwarder: Forwarder;
  readonly #url: string;
  readonly #agent: Agent;

  constructor(forwarder: Forwarder, { url }: WebhookDestination, forwardHosts: string) {
    this.#forwarder = forwarder;
    this.#url = url;
    const timeoutMs = forwarder.timeoutSeconds * 1_000;
    this.#agent = new Agent({
      connect: boundedConnector({
        ...forwarder.secrets.tls,
        timeout: timeoutMs,
        lookup: allowedLookup(lookupOf(forwarder.fleetId), !isAnyHostAllowed(forwardHosts)) as LookupFunction,
      }),
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
    });
  }

  async send(records: readonly StoredRecord[], stop: AbortSignal): Promise<Outcome> {
    const { id, fleetId, secrets, timeoutSeconds } = this.#forwarder;
    const body = bodyOf(fleetId, records);
    using linked = new LinkedAbort(stop, timeoutSeconds * 1_000);
    try {
      const answer = await request(this.#url, {
        dispatcher: this.#agent,
        method: 'POST',
        headers: {
          ...Object.fromEntries(secrets.headers),
          'content-type': 'application/json',
          'user-agent': 'Fleetpost',
          ...signatureHeaders(batchId(id, records), body, secrets.signing, Date.now()),
        },
        body,
        signal: linked.signal,
      });
      // Only the status counts, whether or not the rest of the answer arrives.
      await answer.body.dump({ limit: answerBytesMax }).catch(() => {});
      return outcomeOf(answer.statusCode, answer.headers['retry-after']);
    } catch (error) {
      const code = errorCode(error) ?? 'unknown';
      if (code === forbiddenAddressCode) return { result: 'failed', reason: forbiddenAddressReason };
      if (isTooMuchReceived(code))
        return { result: 'failed', reason: 'The receiver answers without an end.' };
      const isLate = linked.isLate || code.includes('TIMEOUT');
      const reason = isLate
        ? `The receiver did not answer within ${timeoutSeconds} seconds.`
        : `The receiver is unreachable (${code}).`;
      return { result: 'failed', reason };
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

/** Connects as undici does, and bounds what the receiver may send until the next request is written. */
function boundedConnector(options: buildConnector.BuildOptions): buildConnector.connector {
  const connect = buildConnector(options);
  return (to, done) =>
    connect(to, (...[error, socket]) => {
      // Of a connection that failed it names the error alone.
      if (error !== null) return done(error, null);
      let written = 0;
      let readBefore = 0;
      const bounded = boundSocket(socket, ({ bytesRead, bytesWritten }) => {
        if (bytesWritten !== written) [written, readBefore] = [bytesWritten, bytesRead];
        return bytesRead - readBefore <= receivedBytesMax;
      });
      done(null, bounded);
    });
}

function bodyOf(fleetId: string, records: readonly StoredRecord[]): Buffer {
  const parts: Uint8Array[] = [Buffer.from(`{"type":"records","fleet_id":"${fleetId}","records":[`)];
  for (const [index, record] of records.entries()) {
    if (index > 0) parts.push(Buffer.from(',\n'));
    parts.push(recordJson(record));
  }
  return Buffer.concat([...parts, Buffer.from(']}')]);
}

function outcomeOf(status: number, retryAfter: string | string[] | undefined): Outcome {
  if (status >= 200 && status < 300) return { result: 'delivered' };
  const reason = `The receiver answered with status ${status}.`;
  if (refusals.has(status)) return { result: 'refused', reason };
  const retryAfterMs = typeof retryAfter === 'string' ? retryAfterMsOf(retryAfter) : undefined;
  if (retryAfterMs !== undefined) return { result: 'failed', reason, retryAfterMs };
  return { result: 'failed', reason, ...(status >= 500 && { isAnswer: true }) };
}

/** Parses Retry-After: seconds or a date (RFC 9110, 10.2.3). */
function retryAfterMsOf(retryAfter: string): number | undefined {
  if (/^\d{1,9}$/.test(retryAfter)) return Number(retryAfter) * 1_000;
  const atMs = Date.parse(retryAfter);
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - Date.now());
}
