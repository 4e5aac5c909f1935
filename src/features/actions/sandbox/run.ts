/** What the server and a thread that runs actions say to each other. */

/** The record as the action's function is given it; `payload` is JSON text on the way there. */
export interface RunRecord {
  /** UUIDv7. */
  id: string;
  kind: 'message' | 'datapoint';
  /** Id of the device that sent it. */
  device: string;
  /** Of its schema. */
  name: string;
  /** JSON text of an object. */
  payload: string;
  /** ISO 8601, UTC. */
  time: string;
}

export interface RunLimits {
  cpuMilliseconds: number;
  wallMilliseconds: number;
  memoryBytes: number;
  /** Calls of `send` and `sendToTag`, and devices named in them. */
  mailsMax: number;
  /** Of one mail, as JSON. */
  payloadBytesMax: number;
  stateWritesMax: number;
  stateValueBytesMax: number;
}

export interface RunRequest {
  /**
   * Names this code: the same key always comes with the same code, so that a thread may keep it ready. Undefined:
   * what the run leaves in its realm is for nobody else.
   */
  key: string | undefined;
  /** Of the action. */
  name: string;
  /** JavaScript, an ES module, as `compile` answered it. */
  code: string;
  record: RunRecord;
  limits: RunLimits;
}

/** Mail that the run wants to be sent: to devices by their ids, or to those that have a tag. */
export interface Send {
  to: { devices: readonly string[] } | { tag: string };
  name: string;
  /** JSON text of an object. */
  payload: string;
  ttlSeconds?: number;
}

/** Null: the key is removed. */
export interface StateWrite {
  key: string;
  /** JSON text. */
  value: string | null;
}

/** What a run can end with besides success; README's table says each in a sentence. */
export const runErrorCodes = [
  'invalid_code',
  'unreadable_record',
  'threw',
  'cpu_time_exceeded',
  'wall_time_exceeded',
  'memory_exceeded',
  'stack_exceeded',
  'never_settled',
  'invalid_call',
  'too_many_mails',
  'invalid_mail',
  'state_full',
  'state_conflict',
  'mail_refused',
  'thread_lost',
] as const;
export type RunErrorCode = (typeof runErrorCodes)[number];

export interface RunError {
  code: RunErrorCode;
  /** Bounded; may hold text of the action's. */
  msg: string;
}

export interface RunReport {
  error: RunError | undefined;
  /** In the order they were asked for. Nothing of a failed run is sent or written. */
  sends: readonly Send[];
  writes: readonly StateWrite[];
  /** Lines of its log, also of a run that failed. */
  log: readonly string[];
  /** Time that the engine was running: what `cpuMilliseconds` bounds. */
  cpuMilliseconds: number;
  wallMilliseconds: number;
}

/** What a run may ask while it is under way. */
export type HostCall = { type: 'device'; id: string } | { type: 'state'; key: string };

/** The answer as JSON text; `null` for what there is not. */
export type HostAnswer = (question: HostCall) => Promise<string>;
