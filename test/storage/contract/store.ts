import { afterEach, beforeEach, test } from 'vitest';
import { type DeviceKey, deviceKeyOf } from '../../../src/core/identity.ts';
import { formatUuid } from '../../../src/core/uuid.ts';
import type { Device } from '../../../src/domain/devices/device.ts';
import { undescribed } from '../../../src/domain/devices/device-fields.ts';
import type {
  Announcement,
  Enqueue,
  Settle,
  SettleOutcome,
  SettleVerb,
} from '../../../src/domain/mail/mail.ts';
import type { StoredRecord } from '../../../src/domain/records/record.ts';
import type { Shard } from '../../../src/domain/shard.ts';
import type { Engine, EngineOptions, OpenEngine } from './engine.ts';

export const fleetId = 'FLEET001';
export const otherFleetId = 'FLEET002';
/** Two devices of one fleet, and one that is called like the first in another. */
export const device = deviceKeyOf(fleetId, 'DEVICE0001');
export const second = deviceKeyOf(fleetId, 'DEVICE0002');
export const namesake = deviceKeyOf(otherFleetId, 'DEVICE0001');

/** A digest as one of a secret is. */
export const digestOf = (secret: number): Buffer => Buffer.alloc(32, secret);
/** The payload is JSON, as front ends let in nothing else. */
export const payloadOf = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

export function newDevice(key: DeviceKey, rest: Partial<Device> = {}): Device {
  const plain = { enabled: true, secretDigests: [digestOf(1)], ...undescribed, createdAtMs: 1_000 };
  return { device: key, ...plain, ...rest };
}

/** Content of a record about a mail. */
export interface MailEventRecord {
  mail_id: string;
  event: string;
  requeue_count?: number;
  fetch_count?: number;
  first_fetched_at?: string | null;
  new_mail_id?: string;
}

/** An open event stream that notes what it is told. */
export class NotingSink {
  readonly announced: Announcement[] = [];
  rechecks = 0;
  ends = 0;

  announce(announcement: Announcement): void {
    this.announced.push(announcement);
  }

  recheck(): void {
    this.rechecks += 1;
  }

  end(): void {
    this.ends += 1;
  }
}

/** The store under test, and what tests ask of it in a word. */
export class Store {
  #opened: OpenEngine | undefined;

  async open(engine: Engine, options: EngineOptions): Promise<void> {
    this.#opened = await engine.open(options);
  }

  get opened(): OpenEngine {
    if (this.#opened === undefined) throw new Error('a store is open during a test alone');
    return this.#opened;
  }

  get shard(): Shard {
    return this.opened.shard;
  }

  get elsewhere(): Shard {
    return this.opened.elsewhere;
  }

  async end(): Promise<void> {
    await this.opened.close();
    await this.opened.remove();
  }

  reopen(changed: EngineOptions = {}): Promise<void> {
    return this.opened.reopen(changed);
  }

  async create(...devices: DeviceKey[]): Promise<void> {
    const taken = await this.shard.devices.create(devices.map((key) => newDevice(key)));
    if (taken !== undefined) throw new Error(`${taken} is there already`);
  }

  /** A mail that must be taken. Answers its id. */
  async send(to: DeviceKey, more: Partial<Enqueue> = {}, by: Shard = this.shard): Promise<Uint8Array> {
    const outcome = await by.mail.enqueue(mailFor(to, more));
    if (outcome.result !== 'queued') throw new Error(outcome.result);
    return outcome.mailId;
  }

  /** So many, one after the other. */
  async sendMany(to: DeviceKey, count: number, more: Partial<Enqueue> = {}): Promise<Uint8Array[]> {
    const ids: Uint8Array[] = [];
    while (ids.length < count) ids.push(await this.send(to, more));
    return ids;
  }

  settle(
    of: DeviceKey,
    mailId: Uint8Array,
    verb: SettleVerb,
    more: Partial<Settle> = {},
  ): Promise<SettleOutcome> {
    return this.shard.mail.settle({ device: of, mailId, verb, ...more });
  }

  /** Reads ids in mailbox order, by pages of a few. */
  async mailIds(of: DeviceKey): Promise<string[]> {
    const ids: string[] = [];
    for (let after: string | null = ''; after !== null; ) {
      const page = await this.shard.mail.list(of, after, 3);
      ids.push(...page.items.map(({ id }) => formatUuid(id)));
      after = page.next;
    }
    return ids;
  }

  /** How a mail stands, by its receipt. */
  async stateOf(of: DeviceKey, mailId: Uint8Array): Promise<string | undefined> {
    return (await this.shard.mail.receipt(of, mailId))?.state;
  }

  /** Ids of the dead letters of a fleet. */
  async letterIds(of = fleetId): Promise<string[]> {
    const ids: string[] = [];
    for (let after: string | null = ''; after !== null; ) {
      const page = await this.shard.deadLetters.list(of, {}, after, 100);
      ids.push(...page.items.map(({ mailId }) => formatUuid(mailId)));
      after = page.next;
    }
    return ids;
  }

  /** All that the log has from a position on. */
  async records(from = 0): Promise<StoredRecord[]> {
    const records: StoredRecord[] = [];
    for (let at = from; ; ) {
      const page = await this.shard.log.read(at);
      records.push(...page.records);
      if (page.next === at) return records;
      at = page.next;
    }
  }

  /** Reads the log's records about the mail of a device, in order. */
  async mailEvents(of: DeviceKey): Promise<MailEventRecord[]> {
    const records = (await this.records()).filter((one) => one.device === of && one.kind === 'receipt');
    return records.map(({ payload }) => JSON.parse(payload.toString('utf8')));
  }
}

/** A mail that lives for longer than any test. */
export function mailFor(to: DeviceKey, more: Partial<Enqueue> = {}): Enqueue {
  const plain = { name: 'note', payload: payloadOf({}), ttlSeconds: 3_600, mailboxMailsMax: 1_000 };
  return { device: to, ...plain, ...more };
}

/** Tests of their own empty stores, which may run at once: for what waits much and does little. */
export const storeTest = (engine: Engine, options: EngineOptions = {}) =>
  test.extend('store', async ({ task: _ }, { onCleanup }): Promise<Store> => {
    const store = new Store();
    await store.open(engine, options);
    onCleanup(() => store.end());
    return store;
  });

/** An empty store for each test of the suite that calls this. */
export function useStore(engine: Engine, options: EngineOptions = {}): Store {
  const store = new Store();
  beforeEach(() => store.open(engine, options));
  afterEach(() => store.end());
  return store;
}
