/** POSTs every batch. */
export interface WebhookDestination {
  type: 'webhook';
  url: string;
}

/** Publishes a message per record. */
export interface NatsDestination {
  type: 'nats';
  /** `nats://HOST:PORT` or `tls://HOST:PORT`. */
  servers: readonly string[];
  /** Template with {fleet_id}, {device_id}, {kind} and {schema}. */
  subject: string;
  /** `at-most-once` is not acknowledged: the NATS server may lose it. */
  delivery: 'jetstream' | 'at-most-once';
}

export type Destination = WebhookDestination | NatsDestination;

/** Records must match all members. */
export interface ForwarderFilter {
  /** Kinds of records, as in the log. */
  kinds?: readonly string[];
  schemas?: readonly string[];
}

/** How to authenticate with NATS. */
export type NatsCredentials =
  | { token: string }
  | { user: string; password: string }
  /** The text of a credentials file. */
  | { creds: string };

/** PEM texts. */
export interface ForwarderTls {
  ca?: string;
  cert?: string;
  key?: string;
}

/** A signing key in the format of Standard Webhooks: `whsec_` and base64. */
export interface SigningSecret {
  secret: string;
  /** When it was set; absent if that was not noted yet. */
  sinceMs?: number;
  /** Absent: the current one. */
  untilMs?: number;
}

/** Secrets of a forwarder; no response has them. */
export interface ForwarderSecrets {
  /** Webhook: the current one first. */
  signing: readonly SigningSecret[];
  /** Webhook: names in lower case, with their values. */
  headers: readonly (readonly [name: string, value: string])[];
  credentials?: NatsCredentials;
  tls: ForwarderTls;
}

/** Declared settings besides secrets. */
export interface ForwarderSettings {
  destination: Destination;
  filter: ForwarderFilter;
  enabled: boolean;
  batchRecordsMax: number;
  /** Minimum time between two batches of a shard, unless the first was full. */
  lingerMilliseconds: number;
  timeoutSeconds: number;
}

/** Position where a new forwarder begins in the logs. */
export type ForwarderStart = 'earliest' | 'latest';

export interface Forwarder extends ForwarderSettings {
  /** UUIDv7; a new one if it is deleted and put again. */
  id: string;
  fleetId: string;
  /** Same pattern as schema names (D2). */
  name: string;
  createdAtMs: number;
  /** Positions, one of each log, where a new one begins: as the node that declared it saw them. */
  since: readonly number[];
  secrets: ForwarderSecrets;
}
