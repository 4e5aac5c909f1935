import { setTimeout as wait } from 'node:timers/promises';
import { type Path, pathTo } from '../../src/contract/routes/path.ts';
import { fleetId } from './devices.ts';
import type { Fleetpost } from './fleetpost.ts';
import { messageSchema } from './payload-schema.ts';

export interface ActionOptions {
  name: string;
  /** JavaScript. */
  source: string;
  /** Schema of the messages that run it. */
  schema?: string;
  fleet?: string;
}

type ActionPath = Path<'/fleets/{fleet_id}/actions/{name}'>;

/** The mail is named by the message: streams tell by that how old it is. */
export const answering =
  'export default (record, fleet) => fleet.send(record.device, record.payload.sensor, { seconds: 30 });';

const pollMs = 25;
/** When no run has ended for so long, none will. */
const stuckMs = 60_000;

/** An action of a server that is measured; it is there, but runs only between `enable` and `disable`. */
export class BenchAction {
  readonly #server: Fleetpost;
  readonly #path: ActionPath;

  private constructor(server: Fleetpost, path: ActionPath) {
    this.#server = server;
    this.#path = path;
  }

  static async put(
    server: Fleetpost,
    { name, source, schema = messageSchema, fleet = fleetId }: ActionOptions,
  ): Promise<BenchAction> {
    const action = new BenchAction(
      server,
      pathTo('/fleets/{fleet_id}/actions/{name}', { fleet_id: fleet, name }),
    );
    await server.admin.request('PUT', action.#path, {
      json: { source, language: 'javascript', on: [{ kind: 'message', schema }], enabled: false },
    });
    return action;
  }

  /** Enables the action from now on; what was stored before is not for it. */
  async enable(): Promise<void> {
    await this.#server.admin.request('PATCH', this.#path, { json: { enabled: true } });
  }

  async disable(): Promise<void> {
    await this.#server.admin.request('PATCH', this.#path, { json: { enabled: false } });
  }

  /** Records that it is still to run for, and those whose mails are not in their mailboxes yet. */
  async waiting(): Promise<number> {
    const {
      behind,
      in_hand,
      dead_letters: deadLetters,
    } = await this.#server.admin.request('GET', this.#path);
    if (deadLetters > 0) throw new Error(`${deadLetters} runs of an action have failed`);
    return behind + in_hand;
  }

  /** Settles when every run has ended and every mail is in its mailbox. @throws Error when a run fails, or none ends. */
  async untilDone(): Promise<void> {
    let left = Number.POSITIVE_INFINITY;
    let seenMs = performance.now();
    for (;;) {
      const waiting = await this.waiting();
      if (waiting === 0) return;
      if (waiting < left) seenMs = performance.now();
      if (performance.now() - seenMs > stuckMs) throw new Error(`${waiting} runs of an action do not end`);
      left = Math.min(left, waiting);
      await wait(pollMs);
    }
  }
}
