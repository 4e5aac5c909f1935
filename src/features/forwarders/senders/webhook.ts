import { createHash, createHmac } from 'node:crypto';
import type { LookupFunction } from 'node:net';
import { Agent, request } from 'undici';
import type { StoredRecord } from '../../../domain/records/record.ts';
import { recordDocument } from '../../records/record-line.ts';
import { isAnyHostAllowed } from '../declaration/forward-hosts.ts';
import type { Forwarder, SigningSecret, WebhookDestination } from '../declaration/forwarder.ts';
import { signingKey } from '../declaration/signing-secret.ts';
import { allowedLookup, errorCode, forbiddenAddressCode, forbiddenAddressReason } from './allowed-lookup.ts';
import { LinkedAbort } from './linked-abort.ts';
import type { Outcome, Sender } from './sender.ts';

/**
 * The same for the same records of the same forwarder, after a restart too: so that a receiver can tell a batch that
 * comes again.
 */
function batchId(forwarderId: string, records: readonly StoredRecord[]): string {
  const hash = createHash('sha256').update(forwarderId);
  for (const { id } of records) hash.update(id);
  return `msg_${hash.digest('base64url').slice(0, 32)}`;
}

/** What Standard Webhooks has a request carry: a signature of every key that is good now, the present one first. */
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

/** Of an answer, which nobody looks at: read that far so that its connection can be used again. */
const answerBytesMax = 65_536;

/**
 * Statuses that speak of this body. Every other refusal speaks of the destination (a wrong path, a token that has
 * expired), and would be the same for all other records: those wait until somebody has mended it.
 */
const refusals: ReadonlySet<number> = new Set([400, 413, 415, 422]);

/** A POST of every batch, signed as Standard Webhooks has it; its connections are used again. */
export class WebhookSender implements Sender {
  readonly #forwarder: Forwarder;
  readonly #url: string;
  readonly #agent: Agent;

  constructor(forwarder: Forwarder, { url }: WebhookDestination, forwardHosts: string) {
    this.#forwarder = forwarder;
    this.#url = url;
    const timeoutMs = forwarder.timeoutSeconds * 1_000;
    this.#agent = new Agent({
      connect: {
        ...forwarder.secrets.tls,
        timeout: timeoutMs,
        ...(isAnyHostAllowed(forwardHosts) && { lookup: allowedLookup() as LookupFunction }),
      },
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
    });
  }

  async send(records: readonly StoredRecord[], stop: AbortSignal): Promise<Outcome> {
    const { id, fleetId, secrets, timeoutSeconds } = this.#forwarder;
    const body = bodyOf(fleetId, records);
    using ending = new LinkedAbort(stop, timeoutSeconds * 1_000);
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
        signal: ending.signal,
      });
      // The status is the answer: whether the rest of it arrives makes no difference.
      await answer.body.dump({ limit: answerBytesMax }).catch(() => {});
      return outcomeOf(answer.statusCode, answer.headers['retry-after']);
    } catch (error) {
      const code = errorCode(error) ?? 'unknown';
      if (code === forbiddenAddressCode) return { result: 'failed', reason: forbiddenAddressReason };
      const isLate = ending.isLate || code.includes('TIMEOUT');
      const reason = isLate
        ? `There was no answer within ${timeoutSeconds} seconds.`
        : `The receiver cannot be reached (${code}).`;
      return { result: 'failed', reason };
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

function bodyOf(fleetId: string, records: readonly StoredRecord[]): Buffer {
  const parts: Uint8Array[] = [Buffer.from(`{"type":"records","fleet_id":"${fleetId}","records":[`)];
  for (const [index, record] of records.entries()) {
    if (index > 0) parts.push(Buffer.from(',\n'));
    parts.push(recordDocument(record));
  }
  return Buffer.concat([...parts, Buffer.from(']}')]);
}

function outcomeOf(status: number, retryAfter: string | string[] | undefined): Outcome {
  if (status >= 200 && status < 300) return { result: 'delivered' };
  const reason = `The receiver answered with status ${status}.`;
  if (refusals.has(status)) return { result: 'refused', reason };
  const retryAfterMs = typeof retryAfter === 'string' ? waitOf(retryAfter) : undefined;
  if (retryAfterMs !== undefined) return { result: 'failed', reason, retryAfterMs };
  return { result: 'failed', reason, ...(status >= 500 && { isAnswer: true }) };
}

/** RFC 9110, 10.2.3: seconds or a date. */
function waitOf(retryAfter: string): number | undefined {
  if (/^\d{1,9}$/.test(retryAfter)) return Number(retryAfter) * 1_000;
  const atMs = Date.parse(retryAfter);
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - Date.now());
}
