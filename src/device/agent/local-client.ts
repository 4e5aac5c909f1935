import { request } from 'node:http';
import type { DeviceIdentity } from '../client/link.ts';

const answerMsMax = 5_000;

/** Asks the agent behind a socket: its answer, or undefined if there is none. */
export function askAgent(
  socketPath: string,
  method: string,
  path: string,
  identity?: DeviceIdentity,
): Promise<{ status: number; body: Record<string, unknown> } | undefined> {
  const headers = identity && { 'X-Fleet-ID': identity.fleet, 'X-Device-ID': identity.id };
  return new Promise((resolve) => {
    const options = {
      socketPath,
      method,
      path,
      agent: false,
      timeout: answerMsMax,
      ...(headers && { headers }),
    };
    const asked = request(options, async (response) => {
      try {
        let text = '';
        for await (const part of response) text += part;
        resolve({ status: response.statusCode ?? 0, body: JSON.parse(text) });
      } catch {
        resolve(undefined);
      }
    });
    asked.on('timeout', () => asked.destroy());
    asked.on('error', () => resolve(undefined));
    asked.end();
  });
}
