import type { Awaitable, Page } from '../../domain/shard.ts';
import type { Action, ActionDraft, ActionTest, ActionVersion } from './declaration/action.ts';
import type { RunError } from './sandbox/run.ts';

/** An action and its status. */
export interface ActionStatus {
  action: Action;
  current: ActionVersion;
  /**
   * Why an enabled action takes no records now: dead letters, devices behind, rate limit, or a full disk or map of the
   * journal.
   */
  held: 'dead_letters_full' | 'devices_full' | 'limited' | 'disk_full' | undefined;
  /** Records running, or waiting for a thread or another attempt. */
  inHand: number;
  /** Positions not scanned yet, in the logs of all shards. */
  behind: number;
  deadLetters: number;
  /** Devices whose records wait while those of others pass. */
  devicesBehind: number;
  runsLastMinute: number;
  /** Attempts since the server started, by outcome. */
  attempts: Readonly<Record<Run['outcome'], number>>;
}

/** What a run for a test record would have done. */
export interface RunTrial {
  error: RunError | undefined;
  /** Tags are resolved to devices. */
  mails: readonly { device: string; name: string; payload: string; ttlSeconds?: number }[];
  /** Null: removed. */
  state: readonly { key: string; value: string | null }[];
  log: readonly string[];
  cpuMilliseconds: number;
  wallMilliseconds: number;
}

/** One test of a version; `reason`: why it failed. */
export interface TestOutcome {
  /** From 1, in declared order. */
  test: number;
  reason: string | undefined;
}

/** One attempt at a run, as retained for operators. */
export interface Run {
  /** Ascending number of an action. */
  number: number;
  recordId: string;
  device: string;
  name: string;
  version: number;
  attempt: number;
  endedAtMs: number;
  cpuMilliseconds: number;
  wallMilliseconds: number;
  outcome: 'done' | 'failed' | 'dead';
  error: RunError | undefined;
  /** Mails queued for delivery. */
  mails: number;
}

/** A run that failed for good, with everything a replay needs. */
export interface ActionDeadLetter {
  number: number;
  recordId: string;
  kind: 'message' | 'datapoint';
  device: string;
  name: string;
  payload: string;
  storedAtMs: number;
  failedAtMs: number;
  attempts: number;
  error: RunError;
  /** With `mail_refused`: the refused mails. The run itself is done; a replay sends only these. */
  refused: readonly {
    device: string;
    name: string;
    reason: 'mailbox_full' | 'device_not_found' | 'not_stored';
  }[];
}

export interface ActionLogLine {
  /** Ascending number of an action. */
  number: number;
  run: number;
  device: string;
  atMs: number;
  text: string;
}

/** Newest first. `after`: the last number seen. `text`: matches anywhere, ignoring case. */
export interface RunQuery {
  after?: number;
  limit: number;
  device?: string;
  outcome?: Run['outcome'];
  text?: string;
}
export type LogQuery = Pick<RunQuery, 'after' | 'limit' | 'device' | 'text'> & { run?: number };

/**
 * Actions, as the admin API uses them. Every method but `all` throws ApiError fleet_not_found or action_not_found where
 * its path names none.
 */
export interface ActionService {
  list(fleetId: string): Awaitable<ActionStatus[]>;
  /** The actions of all fleets. */
  all(): AsyncIterable<ActionStatus>;
  get(fleetId: string, name: string): Awaitable<ActionStatus>;
  /** @throws ApiError action_version_not_found. */
  version(fleetId: string, name: string, number: number): Awaitable<ActionVersion>;
  /**
   * Deploys a new version. The code must compile even with `force`; a failing test refuses it only without.
   * @throws ApiError invalid_action, action_test_failed, limit_reached.
   */
  put(
    fleetId: string,
    name: string,
    draft: ActionDraft,
    options: { force: boolean; enabled?: boolean; runsPerSecondMax?: number | null },
  ): Promise<{ status: ActionStatus; isNew: boolean; tests: readonly TestOutcome[] }>;
  /** Null: the configured default. A disabled action skips records stored meanwhile. */
  change(
    fleetId: string,
    name: string,
    change: { enabled?: boolean; runsPerSecondMax?: number | null },
  ): Promise<ActionStatus>;
  /** @throws ApiError action_version_not_found. */
  rollback(fleetId: string, name: string, number: number): Promise<ActionStatus>;
  delete(fleetId: string, name: string): Promise<void>;
  /** Runs a draft, or else the deployed version, without sending or writing anything. */
  test(fleetId: string, name: string, record: ActionTest['record'], draft?: ActionDraft): Promise<RunTrial>;
  runs(fleetId: string, name: string, query: RunQuery): Awaitable<Page<Run>>;
  logs(fleetId: string, name: string, query: LogQuery): Awaitable<Page<ActionLogLine>>;
  deadLetters(
    fleetId: string,
    name: string,
    query: Pick<RunQuery, 'after' | 'limit'>,
  ): Awaitable<Page<ActionDeadLetter>>;
  /** @throws ApiError dead_letter_not_found. */
  deadLetter(fleetId: string, name: string, number: number): Awaitable<ActionDeadLetter>;
  /** Replays one or all, each with all its attempts; returns how many. @throws ApiError dead_letter_not_found. */
  replay(fleetId: string, name: string, number?: number): Promise<number>;
  /** @throws ApiError dead_letter_not_found. */
  drop(fleetId: string, name: string, number?: number): Promise<number>;
}
