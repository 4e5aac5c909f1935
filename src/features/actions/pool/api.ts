/**
 * What operators program against: `import type { Action } from 'fleetpost/action'`. Types only, and of nothing
 * else of the server's, since this file is published as it is.
 */

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

export interface JsonObject {
  readonly [member: string]: Json;
}

/** A stored datapoint or message that an action runs for. */
export interface ActionRecord<Payload = JsonObject> {
  /** UUIDv7: the same each time that this record is run, so that it can serve as an idempotency key. */
  readonly id: string;
  readonly kind: 'message' | 'datapoint';
  /** Id of the device that sent it. */
  readonly device: string;
  /** Name of its schema. */
  readonly name: string;
  /** As `JSON.parse` makes it: integers beyond 2^53 lose digits. */
  readonly payload: Payload;
  /** When it was stored: ISO 8601, UTC. */
  readonly time: string;
}

export interface Device {
  readonly id: string;
  readonly name: string;
  readonly tags: readonly string[];
  readonly enabled: boolean;
  /** ISO 8601, UTC; null: never. */
  readonly lastSeen: string | null;
  readonly mailboxSize: number;
}

export interface SendOptions {
  /** After this time the mail expires; not given: as the fleet has it. */
  readonly ttlSeconds?: number;
}

/** A small key-value state of this action, for all its devices together. */
export interface ActionState {
  /** Undefined: there is no such key. A read sees what this run wrote before. */
  get(key: string): Promise<Json | undefined>;
  /** Is written when the run succeeds; null removes the key. */
  set(key: string, value: Json): Promise<void>;
  delete(key: string): Promise<void>;
}

/**
 * What an action can do. A call with a wrong argument throws a TypeError or RangeError. Mail is sent, and state
 * written, once the run has succeeded: all of it or, if the run fails, nothing.
 */
export interface Fleet {
  /** Queues mail for a device or several, each named by its id. */
  send(to: string | readonly string[], name: string, payload?: object, options?: SendOptions): Promise<void>;
  /** Queues mail for every device that has this tag. */
  sendToTag(tag: string, name: string, payload?: object, options?: SendOptions): Promise<void>;
  /** Null: the fleet has no such device. */
  device(id: string): Promise<Device | null>;
  readonly state: ActionState;
  /** A line in the log of the action; `console.log` is the same. */
  log(...values: unknown[]): void;
}

/** The default export of an action's module. */
export type Action<Payload = JsonObject> = (
  record: ActionRecord<Payload>,
  fleet: Fleet,
) => void | Promise<void>;
