import type { ListDocument as Page } from '../../src/contract/document.ts';
import { sleep } from '../../src/core/async.ts';
import { anyObject, createFleet, type TestDevice, type TestFleet } from '../harness/devices/device.ts';
import type { TestServer } from '../harness/server/server.ts';
import { ActionLedger } from './action-ledger.ts';
import type { Requester } from './client.ts';
import type { Ledger } from './ledger.ts';

/**
 * Configuration of the servers of a storm: failed runs are tried again soon, and often enough that chance makes none a
 * dead letter; nor does a machine on which a thread waits long for its turn.
 */
export const relayConfig = {
  actionRetryMilliseconds: 10,
  actionAttemptsMax: 8,
  actionWallMilliseconds: 60_000,
};

const sensors = 6;
const addressedReceivers = 2;
const taggedReceivers = 2;
/** Signals of one sensor at full speed after a start; then it goes on slowly, so that all mail can be looked at. */
const burst = 50;
const slowMs = 1_000;
const doomed = 0.05;
const settledWithinMs = 180_000;
const acksAtOnce = 64;
const pageSize = 1_000;

/** Fails in a tenth of its attempts; counts those that succeed. */
const relaySource = `
  export default async (record, fleet) => {
    if (Math.random() < 0.1) throw new Error('not now');
    const { token, to } = record.payload;
    fleet.state.set('count', ((await fleet.state.get('count')) ?? 0) + 1);
    fleet.send(to, 'signalled', { token });
    fleet.sendToTag('hall', 'signalled', { token });
  };`;
const doomedSource = `export default () => { throw new Error('never'); };`;
const countSource = `export default async (_, fleet) => fleet.log((await fleet.state.get('count')) ?? 0);`;

interface Receivers {
  addressed: readonly TestDevice[];
  tagged: readonly TestDevice[];
}

/** A fleet whose actions turn the signals of its sensors into mail. */
export class Relay {
  readonly #fleet: TestFleet;
  readonly #sensors: readonly TestDevice[];
  readonly #receivers: Receivers;
  readonly #ledger: Ledger;
  readonly #outcomes: ActionLedger;
  #sequence = 0;

  private constructor(
    fleet: TestFleet,
    sensors: readonly TestDevice[],
    receivers: Receivers,
    ledger: Ledger,
  ) {
    this.#fleet = fleet;
    this.#sensors = sensors;
    this.#receivers = receivers;
    this.#ledger = ledger;
    this.#outcomes = new ActionLedger(ledger.findings);
  }

  static async create(server: TestServer, ledger: Ledger): Promise<Relay> {
    const fleet = await createFleet(server, { mailbox_mails_max: 65_535 });
    await fleet.putSchema('message', 'any', anyObject);
    const devices = (count: number, body = {}): Promise<TestDevice[]> =>
      Promise.all(Array.from({ length: count }, () => fleet.createDevice(body)));
    const receivers = {
      addressed: await devices(addressedReceivers),
      tagged: await devices(taggedReceivers, { tags: ['hall'] }),
    };
    const put = async (name: string, source: string, filter = {}): Promise<void> => {
      const action = { source, language: 'javascript', on: [{ kind: 'message', schema: 'any' }], filter };
      const { status, body } = await server.admin('PUT', `/fleets/${fleet.fleetId}/actions/${name}`, action);
      if (status !== 201) throw new Error(JSON.stringify(body));
    };
    await put('relay', relaySource);
    const isDoomed = { properties: { isDoomed: { const: true } } };
    await put('doomed', doomedSource, { payload: { type: 'object', required: ['isDoomed'], ...isDoomed } });
    return new Relay(fleet, await devices(sensors), receivers, ledger);
  }

  /** One client a sensor: each call sends one signal. */
  clients(client: Requester): (() => Promise<void>)[] {
    return this.#sensors.map((sensor) => {
      let sent = 0;
      return async () => {
        sent += 1;
        if (sent > burst) await sleep(slowMs);
        await this.#send(client, sensor);
      };
    });
  }

  /** Waits until the actions have nothing left to do, and holds what came of them against what was sent. */
  async check(client: Requester): Promise<void> {
    await Promise.all(['relay', 'doomed'].map((name) => this.#settled(client, name)));
    const { addressed, tagged } = this.#receivers;
    await Promise.all([...addressed, ...tagged].map((receiver) => this.#empty(client, receiver)));
    for (const { run } of await this.#list<{ run: number }>(client, this.#path('doomed/dead-letters'))) {
      const one = await this.#ask<{ payload: { token: string } }>(client, `doomed/dead-letters/${run}`);
      this.#outcomes.deadLetter(one.payload.token);
    }
    for (const { error } of await this.#list<{ error: object }>(client, this.#path('relay/dead-letters'))) {
      this.#ledger.findings.violation(`a run of the relay is a dead letter: ${JSON.stringify(error)}`);
    }
    const record = { device: this.#sensors[0]?.deviceId, payload: {} };
    const draft = { source: countSource, language: 'javascript' };
    const trial = await client.admin<{ log: string[] }>('POST', this.#path('relay/test'), { record, draft });
    this.#outcomes.check(Number(trial.body.log[0]));
    await client.admin('DELETE', this.#path('doomed/dead-letters'));
  }

  async #send(client: Requester, sensor: TestDevice): Promise<void> {
    const { deviceId } = sensor;
    const to = this.#ledger.random.pick(this.#receivers.addressed)?.deviceId ?? '';
    const isDoomed = this.#ledger.random.next() < doomed;
    const record = this.#ledger.records.sending({
      deviceId,
      sequence: this.#sequence++,
      kind: 'message',
      members: { to, ...(isDoomed && { isDoomed }) },
    });
    this.#outcomes.sending(record, [to, ...this.#receivers.tagged.map((one) => one.deviceId)], isDoomed);
    this.#ledger.take(record, await client.device(sensor, 'POST', '/v1/msg/any', record.payload));
  }

  async #settled(client: Requester, name: string): Promise<void> {
    const untilMs = performance.now() + settledWithinMs;
    for (;;) {
      const status = await this.#ask<{ behind: number; in_hand: number }>(client, name);
      if (status.behind + status.in_hand === 0) return;
      if (performance.now() > untilMs) {
        throw new Error(`the action ${name} is not done in time: ${JSON.stringify(status)}`);
      }
      await sleep(50);
    }
  }

  /** Notes what a mailbox holds, head first, and acknowledges all of it. */
  async #empty(client: Requester, receiver: TestDevice): Promise<void> {
    const mails = await this.#list<{ mail_id: string; payload: { token: string } }>(
      client,
      `${receiver.adminPath}/mail`,
    );
    for (const { payload } of mails) this.#outcomes.arrived(receiver.deviceId, payload.token);
    const left = mails.map(({ mail_id }) => mail_id);
    const acknowledge = async (): Promise<void> => {
      for (let id = left.shift(); id !== undefined; id = left.shift()) {
        const { status } = await client.device(receiver, 'PUT', `/v1/mailbox/ack/${id}`);
        this.#ledger.findings.expect(status === 200, () => `an acknowledgement was answered ${status}`);
      }
    };
    await Promise.all(Array.from({ length: acksAtOnce }, acknowledge));
  }

  async #list<T>(client: Requester, path: string): Promise<T[]> {
    const items: T[] = [];
    let after = '';
    for (;;) {
      const { body } = await client.admin<Page<T>>('GET', `${path}?limit=${pageSize}${after}`);
      items.push(...body.items);
      if (body.next === null) return items;
      after = `&after=${body.next}`;
    }
  }

  async #ask<T>(client: Requester, path: string): Promise<T> {
    return (await client.admin<T>('GET', this.#path(path))).body;
  }

  #path(path: string): string {
    return `/fleets/${this.#fleet.fleetId}/actions/${path}`;
  }
}
