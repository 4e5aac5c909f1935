import type { RecordableHistogram } from 'node:perf_hooks';
import { Pool } from 'undici';
import { pathTo } from '../../src/contract/routes/path.ts';
import type { Credentials } from './subject.ts';

/** Requests that queue mail at once: enough to fill the batches of every shard. */
export const enqueuesAtOnce = 64;

export interface Mail {
  device: Credentials;
  /** JSON text. */
  payload: string;
}

/** Address of one node: plain HTTP. */
export interface AdminAddress {
  url: string;
  token: string;
}

/**
 * Queues mail through the admin API of all nodes in turn, each device's in the order given; answers the mail ids
 * in that order. `latency` takes the nanoseconds of each request. @throws Error when one is refused.
 */
export async function enqueue(
  nodes: readonly AdminAddress[],
  mails: readonly Mail[],
  latency?: RecordableHistogram,
): Promise<string[]> {
  const connections = Math.ceil(enqueuesAtOnce / nodes.length);
  const senders = nodes.map(({ url, token }) => ({
    pool: new Pool(url, { connections }),
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
  }));
  const post = async ({ device, payload }: Mail, at: number): Promise<string> => {
    const { pool, headers } = senders[at % senders.length] as (typeof senders)[number];
    const { fleetId, deviceId } = device;
    const path = `/admin/v1${pathTo('/fleets/{fleet_id}/devices/{device_id}/mail/{name}', { fleet_id: fleetId, device_id: deviceId, name: 'water' })}`;
    const start = process.hrtime.bigint();
    const { statusCode, body } = await pool.request({ method: 'POST', path, headers, body: payload });
    const answer = (await body.json()) as { mail_id: string };
    if (statusCode !== 201) throw new Error(`mail was refused: ${JSON.stringify(answer)}`);
    latency?.record(process.hrtime.bigint() - start);
    return answer.mail_id;
  };
  const ids: string[] = [];
  try {
    for (let start = 0; start < mails.length; start += enqueuesAtOnce) {
      ids.push(...(await Promise.all(mails.slice(start, start + enqueuesAtOnce).map(post))));
    }
  } finally {
    for (const { pool } of senders) await pool.destroy();
  }
  return ids;
}
