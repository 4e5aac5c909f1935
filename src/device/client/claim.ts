import { randomInt } from 'node:crypto';
import type { Connection } from './connection.ts';
import type { ServerLink } from './link.ts';
import type { DeviceQueue } from './queue/queue.ts';

const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** Gives the device a secret of its own choice by a claim token, unless it has one. Ends early if it is closed. */
export async function claimSecret(
  link: ServerLink,
  queue: DeviceQueue,
  connection: Connection,
  claimToken: string,
): Promise<void> {
  let secret = queue.value('secret');
  if (secret === undefined) {
    secret = `FOS-${Array.from({ length: 32 }, () => letters[randomInt(letters.length)]).join('')}`;
    // Before it is sent: a lost answer is harmless then.
    await queue.remember('secret', secret);
  }
  const { fleet, id } = link.identity;
  const claim = { fleet_id: fleet, claim_token: claimToken, device_id: id, device_secret: secret };
  for (let attempt = 0; queue.value('claimed') === undefined; attempt += 1) {
    if (link.isClosing) return;
    try {
      const headers = { 'Content-Type': 'application/json' };
      const body = Buffer.from(JSON.stringify(claim));
      const answer = await connection.request('POST', '/v1/claim', headers, body);
      if (answer.status === 201) await queue.remember('claimed', '1');
      else await link.waitAfter(answer, answer.status >= 429 ? attempt : attempt + 5);
    } catch (error) {
      await link.waitAfter(error, attempt);
    }
  }
  link.secret = secret;
}
