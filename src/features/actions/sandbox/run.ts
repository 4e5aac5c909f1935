/** Messages between the server and the threads that run actions. */

/** The record passed to the action's function; `payload` is JSON text in transit. */
export interface RunRecord {
  /** UUIDv7. */
  id: string;
  kind: 'message' | 'datapoint' | 'reply';
  /** Id of the device that sent it. */
  device: string;
  /** Name of its schema. */
  name: string;
  /** JSON text of an object. */
  payload: string;
  /** ISO 8601, UTC. */
  time: string;
  /** When the device recorded it, if it said so. */
  recordedAt?: string;
  /** The mail that a reply answers. */
  mailId?: string;
}

export interface RunLimits {
  cpuMilliseconds: number;
  wallMilliseconds: number;
  memoryBytes: number;
  /** Counts calls of `send` and `sendToTag`, and the devices named in them. */
  mailsMax: number;
  /** Counts calls of `device` and `state.get` that the server answers. */
  readsMax: number;
  /** Limit for one mail, as JSON. */
  payloadBytesMax: number;
  stateWritesMax: number;
  stateValueBytesMax: number;
}

export interface RunRequest {
  /**
   * Identifies the code: the same key always comes with the same code, so that a thread may keep its sandbox warm.
   * Undefined: the sandbox is not reused.
   */
  key: string | undefined;
  /** Name of the action. */
  name: string;
  /** JavaScript, an ES module, as returned by `compile`. */
  code: string;
  record: RunRecord;
  limits: RunLimits;
}

/** What an action may say of a mail; `SendOptions` of its API. */
export interface MailSettings {
  /** Absent: the fleet's default. */
  ttlSeconds?: number;
  replaceKey?: string;
}

/** A mail to send, to devices by id or to those with a tag. */
export interface Send extends MailSettings {
  to: { devices: readonly string[] } | { tag: string };
  name: string;
  /** JSON text of an object. */
  payload: string;
}

/** A write of one key. `value`: JSON text, or null to remove the key. */
export interface StateWrite {
  key: string;
  value: string | null;
}

/** Errors that a run can end with; docs/actions/operating.md explains each. */
export type RunErrorCode =
  | 'invalid_code'
  | 'unreadable_record'
  | 'threw'
  | 'cpu_time_exceeded'
  | 'wall_time_exceeded'
  | 'memory_exceeded'
  | 'stack_exceeded'
  | 'never_settled'
  | 'invalid_call'
  | 'too_many_mails'
  | 'invalid_mail'
  | 'too_many_reads'
  | 'state_full'
  | 'state_conflict'
  | 'mail_refused'
  | 'trial_too_large'
  | 'thread_lost';

export interface RunError {
  code: RunErrorCode;
  /** Bounded; may contain text from the action. */
  msg: string;
}

export interface RunReport {
  error: RunError | undefined;
  /** In order of the calls. Empty if the run failed. */
  sends: readonly Send[];
  writes: readonly StateWrite[];
  /** Lines of its log, even if the run failed. */
  log: readonly string[];
  /** Time that the engine ran, which `cpuMilliseconds` limits. */
  cpuMilliseconds: number;
  wallMilliseconds: number;
}

/** A call that a run makes to the server. */
export type HostCall = { type: 'device'; id: string } | { type: 'state'; key: string };

/** Answers a call with JSON text; `null` for what does not exist. */
export type HostAnswer = (call: HostCall) => Promise<string>;
