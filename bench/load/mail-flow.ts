import { Pool } from 'undici';
import type { Fleetpost } from '../servers/fleetpost.ts';
import type { Credentials } from '../servers/subject.ts';
import { sendAtRate } from './constant-rate.ts';
import { nameOfMail } from './due-time.ts';

const connections = 64;

export interface MailFlow {
  ratePerSecond: number;
  seconds: number;
  payload: Buffer;
}

/**
 * Queues mail for random devices through the admin API, one request each, at a constant rate, whether the
 * ones before have been answered or not. Each mail says in its name when it was due. Answers how many.
 * @throws Error when one is refused.
 */
export async function sendMail(
  server: Fleetpost,
  devices: readonly Credentials[],
  flow: MailFlow,
): Promise<number> {
  const pool = new Pool(server.adminUrl, { connections, pipelining: 1 });
  const headers = { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' };
  const send = async (dueMicroseconds: number): Promise<void> => {
    const { fleetId, deviceId } = devices[Math.floor(Math.random() * devices.length)] as Credentials;
    const path = `/admin/v1/fleets/${fleetId}/devices/${deviceId}/mail/${nameOfMail(dueMicroseconds)}`;
    const { statusCode, body } = await pool.request({ path, method: 'POST', headers, body: flow.payload });
    if (statusCode !== 201) throw new Error(`a mail was refused with ${statusCode}: ${await body.text()}`);
    await body.dump();
  };
  try {
    return await sendAtRate(flow, send);
  } finally {
    await pool.close();
  }
}
