import type { Awaitable, Page } from '../../domain/shard.ts';
import type { Action, ActionDraft, ActionTest, ActionVersion } from './declaration/action.ts';
import type { RunError } from './sandbox/run.ts';

/** An action and how it is doing. */
export interface ActionStatus {
  action: Action;
  current: ActionVersion;
  /**
   * Why it takes no records now, though it is enabled: its parked runs, devices that are behind, its rate, or the
   * disk or map of actions.
   */
  held: 'parked_full' | 'devices_full' | 'limited' | 'disk_full' | undefined;
  /** Records in hand: being run, waiting for a thread, or for another attempt. */
  inHand: number;
  /** Positions of the log, of all shards, that it has not looked at yet. */
  behind: number;
  parked: number;
  /** Devices of which records wait while those of others pass. */
  devicesBehind: number;
  runsLastMinute: number;
  /** Attempts since the server started, by how they ended. */
  attempts: Readonly<Record<Run['outcome'], number>>;
}

/** What a run against a given record would have done. */
export interface RunTrial {
  error: RunError | undefined;
  /** With tags resolved to devices. */
  mails: readonly { device: string; name: string; payload: string; ttlSeconds?: number }[];
  /** Null: removed. */
  state: readonly { key: string; value: string | null }[];
  log: readonly string[];
  cpuMilliseconds: number;
  wallMilliseconds: number;
}

/** One test of a version; `reason` says why it failed. */
export interface TestOutcome {
  /** From 1, in their order. */
  test: number;
  reason: string | undefined;
}

/** One attempt at a run, as it is kept to be looked at. */
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
  outcome: 'done' | 'failed' | 'parked';
  error: RunError | undefined;
  /** Mails that were put up for delivery. */
  mails: number;
}

/** A run that was given up, with all that trying it again needs. */
export interface ActionDeadLetter {
  number: number;
  recordId: string;
  kind: 'message' | 'datapoint';
  device: string;
  name: string;
  payload: string;
  storedAtMs: number;
  parkedAtMs: number;
  attempts: number;
  error: RunError;
  /** For `mail_refused`: what was not taken, and why. The run itself was done; a retry sends these alone. */
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

/** `after`: the number of the last one seen, newest first. Texts are found anywhere, without regard to case. */
export interface RunQuery {
  after?: number;
  limit: number;
  device?: string;
  outcome?: Run['outcome'];
  text?: string;
}
export type LogQuery = Pick<RunQuery, 'after' | 'limit' | 'device' | 'text'> & { run?: number };

/**
 * What the admin API asks of actions. Every method but `all` throws ApiError fleet_not_found or action_not_found
 * where its path names none.
 */
export interface ActionService {
  list(fleetId: string): Awaitable<ActionStatus[]>;
  /** Of all fleets. */
  all(): AsyncIterable<ActionStatus>;
  get(fleetId: string, name: string): Awaitable<ActionStatus>;
  /** @throws ApiError action_version_not_found. */
  version(fleetId: string, name: string, number: number): Awaitable<ActionVersion>;
  /**
   * Deploys a new version. Its code must compile whatever `force` says; a test that fails refuses it without.
   * @throws ApiError invalid_action, action_test_failed, limit_reached.
   */
  put(
    fleetId: string,
    name: string,
    draft: ActionDraft,
    options: { force: boolean; enabled?: boolean; runsPerSecondMax?: number | null },
  ): Promise<{ status: ActionStatus; isNew: boolean; tests: readonly TestOutcome[] }>;
  /** Null goes back to the configuration's. Disabled, it takes no notice of records that are stored meanwhile. */
  change(
    fleetId: string,
    name: string,
    change: { enabled?: boolean; runsPerSecondMax?: number | null },
  ): Promise<ActionStatus>;
  /** @throws ApiError action_version_not_found. */
  rollback(fleetId: string, name: string, number: number): Promise<ActionStatus>;
  delete(fleetId: string, name: string): Promise<void>;
  /** Sends and writes nothing. With a draft: that one in place of what is deployed, if anything is. */
  test(fleetId: string, name: string, record: ActionTest['record'], draft?: ActionDraft): Promise<RunTrial>;
  runs(fleetId: string, name: string, query: RunQuery): Awaitable<Page<Run>>;
  logs(fleetId: string, name: string, query: LogQuery): Awaitable<Page<ActionLogLine>>;
  parked(
    fleetId: string,
    name: string,
    query: Pick<RunQuery, 'after' | 'limit'>,
  ): Awaitable<Page<ActionDeadLetter>>;
  /** @throws ApiError run_not_found. */
  parkedRun(fleetId: string, name: string, number: number): Awaitable<ActionDeadLetter>;
  /** One, or all; answers how many. Each starts over with all its attempts. @throws ApiError run_not_found. */
  retry(fleetId: string, name: string, number?: number): Promise<number>;
  /** @throws ApiError run_not_found. */
  drop(fleetId: string, name: string, number?: number): Promise<number>;
}
