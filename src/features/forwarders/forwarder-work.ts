import type { FailedRecord } from '../dead-letters/dead-letter-queue.ts';
import type { Forwarder, ForwarderSettings, ForwarderStart } from './declaration/forwarder.ts';
import type { SecretsInput } from './declaration/forwarder-secrets.ts';
import type { Outcome } from './senders/sender.ts';

/**
 * paused: by an operator. held: with the whole server, until its release. dead_letters_full: stopped until some are replayed or dropped. backing_off: the last
 * attempt failed; a retry is due. running: everything else.
 */
type ForwarderState = 'running' | 'backing_off' | 'dead_letters_full' | 'held' | 'paused';

/** A forwarder with its state, lag and counters. */
export interface ForwarderStatus {
  forwarder: Forwarder;
  state: ForwarderState;
  /** Positions of the logs, of all fleets, not forwarded yet. */
  behind: number;
  /** Age of the oldest record among them. */
  secondsBehind: number;
  /** Positions trimmed from the logs before they were read. */
  lost: number;
  deadLetters: number;
  /** Records since the start: delivered, in failed attempts, refused and dead-lettered, refused and dropped. */
  counts: Readonly<Record<'delivered' | 'failed' | 'dead' | 'dropped', number>>;
  lastDeliveredAtMs: number | undefined;
  /** Error of the last failed attempt, and when one first succeeded after it. */
  lastError:
    | { readonly atMs: number; readonly msg: string; readonly recoveredAtMs: number | undefined }
    | undefined;
  /** When the first loop in backoff tries again. */
  nextAttemptAtMs: number | undefined;
}

/** Records of the last hour by minute, since the start at most: delivered, in failed attempts, refused. */
export interface ForwarderHour {
  fromMs: number;
  delivered: readonly number[];
  failed: readonly number[];
  refused: readonly number[];
}

/** A record that the destination refused. */
export interface ForwarderDeadLetter extends FailedRecord {
  reason: string;
  /** True if it is queued to be sent again. */
  isReplayed: boolean;
}

/** Result of a test event. */
export interface ForwarderTrial {
  result: Outcome['result'];
  /** Why it was not delivered. */
  msg: string | undefined;
  milliseconds: number;
}

/** A declaration as put. Absent secrets stay as they are as long as the destination does. */
export interface ForwarderDraft {
  settings: ForwarderSettings;
  secrets: SecretsInput;
  /** Position where a new forwarder begins. */
  start: ForwarderStart;
}

/** Result of a declaration. */
export interface DeclaredForwarder {
  status: ForwarderStatus;
  isNew: boolean;
  /** Set if a signing secret was generated. */
  secret: string | undefined;
  /** Set if its destination takes no connections now. */
  warning: string | undefined;
}

/** The forwarders at work on the leader. All but `all` and `followed` throw ApiError fleet_not_found, forwarder_not_found. */
export interface ForwarderWork {
  list(fleetId: string): Promise<ForwarderStatus[]>;
  /** Yields those of all fleets, a few per event loop turn, as there may be many. */
  all(): AsyncIterable<ForwarderStatus>;
  /** Once everything that was declared before the call is in force. */
  get(fleetId: string, name: string): Promise<ForwarderStatus>;
  /** The last hour, where it runs. */
  hour(fleetId: string, name: string): Promise<ForwarderHour>;
  /** Settles once everything that was declared before the call is in force. */
  followed(): Promise<void>;
  /** Why its destination takes no connections now; undefined if it does. Nothing is sent to it. */
  unreachable(fleetId: string, name: string): Promise<string | undefined>;
  /** Sends one test event, and says what came of it. @throws ApiError unavailable. */
  test(fleetId: string, name: string): Promise<ForwarderTrial>;
}
