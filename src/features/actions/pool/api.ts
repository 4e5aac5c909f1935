/**
 * The API that operators write actions against: `import type { Action } from 'fleetpost/action'`. Only types and no
 * imports, as this file is published as it is.
 */

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

export interface JsonObject {
  readonly [member: string]: Json;
}

/** A stored datapoint, message or reply that an action runs for. */
export interface ActionRecord<Payload = JsonObject> {
  /** UUIDv7, the same in each run for this record, so that it can serve as an idempotency key. */
  readonly id: string;
  readonly kind: 'message' | 'datapoint' | 'reply';
  /** Id of the device that sent it. */
  readonly device: string;
  /** Name of its schema. */
  readonly name: string;
  /** Parsed by `JSON.parse`: integers beyond 2^53 lose digits. */
  readonly payload: Payload;
  /** Time when it was stored: ISO 8601, UTC. */
  readonly time: string;
  /** Time when the device recorded it, if it said so by `Recorded-At`: ISO 8601, UTC. */
  readonly recordedAt?: string;
  /** Id of the mail that a reply answers. */
  readonly mailId?: string;
}

export interface Device {
  readonly id: string;
  readonly name: string;
  readonly tags: readonly string[];
  readonly enabled: boolean;
  /** ISO 8601, UTC. Null: never. */
  readonly lastSeen: string | null;
  readonly mailboxSize: number;
}

export interface SendOptions {
  /** The mail expires after this time. Absent: the fleet's default. */
  readonly ttlSeconds?: number;
  /**
   * The mail takes the place of the device's mail of this key that waits and was never fetched. 1 to 64 of A-Z, a-z, 0-9, _
   * and -.
   */
  readonly replaceKey?: string;
}

/** A small key-value store of this action, shared by all its devices. */
export interface ActionState {
  /** Returns undefined if there is no such key. A read sees what this run wrote before. */
  get(key: string): Promise<Json | undefined>;
  /** Takes effect when the run succeeds. Null removes the key. */
  set(key: string, value: Json): Promise<void>;
  delete(key: string): Promise<void>;
}

/**
 * Functions that an action can call. A call with an invalid argument throws a TypeError or RangeError. Mail is sent
 * and state written once the run has succeeded; if it fails, none of it.
 */
export interface Fleet {
  /** Queues mail for one or several devices, by id. */
  send(to: string | readonly string[], name: string, payload?: object, options?: SendOptions): Promise<void>;
  /** Queues mail for every device with this tag. */
  sendToTag(tag: string, name: string, payload?: object, options?: SendOptions): Promise<void>;
  /** Returns null if the fleet has no such device. */
  device(id: string): Promise<Device | null>;
  readonly state: ActionState;
  /** Adds a line to the log of the action, like `console.log`. */
  log(...values: unknown[]): void;
}

/** The default export of an action's module. */
export type Action<Payload = JsonObject> = (
  record: ActionRecord<Payload>,
  fleet: Fleet,
) => void | Promise<void>;
