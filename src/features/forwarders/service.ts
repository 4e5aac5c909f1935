import type { StoredRecord } from '../../domain/records/record.ts';
import type { Awaitable, Page } from '../../domain/shard.ts';
import type { Forwarder, ForwarderSettings, ForwarderStart } from './declaration/forwarder.ts';
import type { SecretsInput } from './declaration/forwarder-secrets.ts';

/**
 * paused: by an operator. dead_letters_full: until some are replayed or dropped. backing_off: the last attempt failed,
 * and another one is waited for. running: everything else.
 */
export const forwarderStates = ['running', 'backing_off', 'dead_letters_full', 'paused'] as const;

/** A forwarder and how it is doing. */
export interface ForwarderStatus {
  forwarder: Forwarder;
  state: (typeof forwarderStates)[number];
  /** Positions of the logs, of all fleets, that it has not come to. */
  behind: number;
  /** Positions that were trimmed from the logs before it came there. */
  lost: number;
  deadLetters: number;
  /** Records since the server started: delivered, in an attempt that failed, refused and kept, refused and not kept. */
  counts: Readonly<Record<'delivered' | 'failed' | 'dead' | 'dropped', number>>;
  lastDeliveredAtMs: number | undefined;
  /** Why the last attempt that was not taken was not; also where a later one was. */
  lastError: { readonly atMs: number; readonly msg: string } | undefined;
}

/** A record that the destination refused. */
export interface ForwarderDeadLetter {
  record: StoredRecord;
  reason: string;
  deadAtMs: number;
  /** It is to be sent once more. */
  isReplayed: boolean;
}

/** What an operator puts. Secrets that are absent stay as they are, as long as the destination does. */
export interface ForwarderDraft {
  settings: ForwarderSettings;
  secrets: SecretsInput;
  /** Of a new one. */
  start: ForwarderStart;
}

/**
 * What the admin API asks of forwarders. Every method throws ApiError fleet_not_found or forwarder_not_found where its
 * path names none.
 */
export interface ForwarderService {
  list(fleetId: string): Promise<ForwarderStatus[]>;
  /** Of all fleets, a few in each turn of the event loop: there may be many. */
  all(): AsyncIterable<ForwarderStatus>;
  get(fleetId: string, name: string): Promise<ForwarderStatus>;
  /** `secret`: what its batches are signed with, where it was made now. @throws ApiError invalid_forwarder, limit_reached. */
  put(
    fleetId: string,
    name: string,
    draft: ForwarderDraft,
  ): Promise<{ status: ForwarderStatus; isNew: boolean; secret: string | undefined }>;
  /** Paused, it keeps its place. */
  change(fleetId: string, name: string, change: { enabled: boolean }): Promise<ForwarderStatus>;
  /** With its place and its dead letters. */
  delete(fleetId: string, name: string): Promise<void>;
  /**
   * Signs with another secret, and with the one before as well for that time. Answers the new one.
   * @throws ApiError invalid_forwarder.
   */
  rotateSecret(
    fleetId: string,
    name: string,
    secret: string | undefined,
    graceSeconds: number,
  ): Promise<string>;
  deadLetters(
    fleetId: string,
    name: string,
    query: { after?: string; limit: number },
  ): Awaitable<Page<ForwarderDeadLetter>>;
  /** @throws ApiError dead_letter_not_found. */
  deadLetter(fleetId: string, name: string, recordId: string): Awaitable<ForwarderDeadLetter>;
  /** Sends one, or all, once more; answers how many. @throws ApiError dead_letter_not_found. */
  replay(fleetId: string, name: string, recordId?: string): Promise<number>;
  /** @throws ApiError dead_letter_not_found. */
  drop(fleetId: string, name: string, recordId?: string): Promise<number>;
}
