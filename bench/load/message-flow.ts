import { readFileSync } from 'node:fs';
import { Pool } from 'undici';
import type { Fleetpost } from '../servers/fleetpost.ts';
import { messageSchema } from '../servers/payload-schema.ts';
import type { Credentials } from '../servers/subject.ts';
import { sendAtRate } from './constant-rate.ts';
import { nameOfMail, nowMicroseconds } from './due-time.ts';

const connections = 64;

/** Sends messages of devices, each of which names in `sensor` the mail that says when it was due. */
export class MessageFlow implements AsyncDisposable {
  readonly #devices: readonly Credentials[];
  readonly #pool: Pool;
  #next = 0;

  constructor(server: Fleetpost, devices: readonly Credentials[]) {
    this.#devices = devices;
    const connect = { ca: readFileSync(server.certFile), rejectUnauthorized: true };
    this.#pool = new Pool(server.url, { connections, pipelining: 1, connect });
  }

  /**
   * Sends messages at a constant rate, whether those before have been answered or not, for so long or until it is
   * aborted. Returns how many. @throws Error when one is refused.
   */
  send(ratePerSecond: number, seconds: number, signal?: AbortSignal): Promise<number> {
    return sendAtRate({ ratePerSecond, seconds, signal }, (due) => this.#post(due));
  }

  /** So many as fast as they are answered. @throws Error when one is refused. */
  async sendAll(count: number): Promise<void> {
    let left = count;
    const sender = async (): Promise<void> => {
      for (; left > 0; ) {
        left -= 1;
        await this.#post(nowMicroseconds());
      }
    };
    await Promise.all(Array.from({ length: connections }, sender));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool.close();
  }

  async #post(dueMicroseconds: number): Promise<void> {
    const { fleetId, deviceId, secret } = this.#devices[this.#next % this.#devices.length] as Credentials;
    this.#next += 1;
    const { statusCode, body } = await this.#pool.request({
      path: `/v1/msg/${messageSchema}`,
      method: 'POST',
      headers: {
        'x-fleet-id': fleetId,
        'x-device-id': deviceId,
        'x-device-secret': secret,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ celsius: 21.5, sensor: nameOfMail(dueMicroseconds) }),
    });
    if (statusCode !== 201) throw new Error(`a message was refused with ${statusCode}: ${await body.text()}`);
    await body.dump();
  }
}
