/** A POST of every batch. */
export interface WebhookDestination {
  type: 'webhook';
  url: string;
}

/** A message for every record. */
export interface NatsDestination {
  type: 'nats';
  /** `nats://HOST:PORT` or `tls://HOST:PORT`. */
  servers: readonly string[];
  /** With {fleet_id}, {device_id}, {kind} and {schema} in it. */
  subject: string;
  /** Acknowledged by a stream of JetStream; or only given to the server, which may lose it. */
  delivery: 'jetstream' | 'at-most-once';
}

export type Destination = WebhookDestination | NatsDestination;

/** All that is given must hold. */
export interface ForwarderFilter {
  /** Of records, as the log has them. */
  kinds?: readonly string[];
  schemas?: readonly string[];
}

/** How to be let in by NATS. */
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

/** A key that batches are signed with, as Standard Webhooks writes it: `whsec_` and base64. */
export interface SigningSecret {
  secret: string;
  /** Absent: the present one. */
  untilMs?: number;
}

/** What is never shown again. */
export interface ForwarderSecrets {
  /** The present one first; of a webhook. */
  signing: readonly SigningSecret[];
  /** Of a webhook: names in lower case, and values. */
  headers: readonly (readonly [name: string, value: string])[];
  credentials?: NatsCredentials;
  tls: ForwarderTls;
}

/** What an operator declares of it besides its secrets. */
export interface ForwarderSettings {
  destination: Destination;
  filter: ForwarderFilter;
  enabled: boolean;
  batchRecordsMax: number;
  /** Least time from one batch of a shard to the next, unless the first was full. */
  lingerMilliseconds: number;
  timeoutSeconds: number;
}

/** Where a new one begins in the logs. */
export type ForwarderStart = 'beginning' | 'now';

export interface Forwarder extends ForwarderSettings {
  /** UUIDv7: one that is deleted and put again has another. */
  id: string;
  fleetId: string;
  /** As a schema's (D2). */
  name: string;
  createdAtMs: number;
  secrets: ForwarderSecrets;
}
