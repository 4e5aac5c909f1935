import { setTimeout as wait } from 'node:timers/promises';
import { Pool } from 'undici';
import type { Fleetpost } from '../servers/fleetpost.ts';
import type { Credentials } from '../servers/subject.ts';
import { nameOfMail, nowMicroseconds } from './due-time.ts';

const connections = 64;
const tickMs = 1;

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
  { ratePerSecond, seconds, payload }: MailFlow,
): Promise<number> {
  const pool = new Pool(server.adminUrl, { connections, pipelining: 1 });
  const headers = { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' };
  const send = async (dueMicroseconds: number): Promise<void> => {
    const { fleetId, deviceId } = devices[Math.floor(Math.random() * devices.length)] as Credentials;
    const path = `/admin/v1/fleets/${fleetId}/devices/${deviceId}/mail/${nameOfMail(dueMicroseconds)}`;
    const { statusCode, body } = await pool.request({ path, method: 'POST', headers, body: payload });
    if (statusCode !== 201) throw new Error(`a mail was refused with ${statusCode}: ${await body.text()}`);
    await body.dump();
  };
  const total = ratePerSecond * seconds;
  const startMicroseconds = nowMicroseconds();
  const sent: Promise<void>[] = [];
  let failure: Error | undefined;
  while (sent.length < total && failure === undefined) {
    const due = ((nowMicroseconds() - startMicroseconds) / 1e6) * ratePerSecond;
    while (sent.length < Math.min(due, total)) {
      const mail = send(startMicroseconds + (sent.length / ratePerSecond) * 1e6);
      sent.push(
        mail.catch((error: Error) => {
          failure ??= error;
        }),
      );
    }
    await wait(tickMs);
  }
  await Promise.all(sent);
  await pool.close();
  if (failure !== undefined) throw failure;
  return total;
}
