import { createHash, createHmac } from 'node:crypto';
import type { StoredRecord } from '../../../domain/records/record.ts';
import type { SigningSecret } from '../declaration/forwarder.ts';
import { signingKey } from '../declaration/signing-secret.ts';

/**
 * The same for the same records of the same forwarder, after a restart too: so that a receiver can tell a batch that
 * comes again.
 */
export function batchId(forwarderId: string, records: readonly StoredRecord[]): string {
  const hash = createHash('sha256').update(forwarderId);
  for (const { id } of records) hash.update(id);
  return `msg_${hash.digest('base64url').slice(0, 32)}`;
}

/** What Standard Webhooks has a request carry: a signature of every key that is good now, the present one first. */
export function signatureHeaders(
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
