import type { Awaitable } from '../../core/async.ts';
import type { Page } from '../../domain/page.ts';
import type { RunKind } from '../../domain/records/record.ts';
import type { FailedRecord } from '../dead-letters/dead-letter-queue.ts';
import type { CheckedCode } from './compiler/checked-code.ts';
import type { CompilerLossReason } from './compiler/compiler-child.ts';
import type { TypeFault } from './compiler/type-check.ts';
import type { Action, ActionDraft, ActionTest, RunningVersion, TestRecord } from './declaration/action.ts';
import type { Asker } from './queue/schedule.ts';
import type { RunError } from './sandbox/run.ts';

/** How the attempts of an action's current version fail, as far as they are retained. */
export interface ActionFailures {
  last: { error: RunError; atMs: number } | undefined;
  /** Failed attempts since the last that succeeded. */
  sinceSuccess: number;
}

/** An action and its status. */
export interface ActionStatus {
  action: Action;
  current: RunningVersion;
  /**
   * Why an enabled action takes no records now: dead letters, a filter that took too long, devices behind, rate limit, or a full disk or map of the
   * journal, or the server is held.
   */
  held:
    | 'dead_letters_full'
    | 'filter_disabled'
    | 'devices_full'
    | 'limited'
    | 'disk_full'
    | 'server_held'
    | undefined;
  /** Records running, or waiting for a thread or another attempt. */
  inHand: number;
  /** Positions not scanned yet, in the logs of all shards. */
  behind: number;
  /** Positions trimmed from the logs before they were scanned, since it was enabled. */
  lost: number;
  deadLetters: number;
  /** Devices whose records wait while those of others pass. */
  devicesBehind: number;
  /** Those of them that have used their share of the dead letters. */
  devicesBlocked: number;
  /** Runs of all versions. */
  runsLastMinute: number;
  /** Attempts since the server started, by outcome. */
  attempts: Readonly<Record<Run['outcome'], number>>;
}

/** An action as shown to operators: reading its runs is too much for each scrape of the metrics. */
export interface ShownAction extends ActionStatus {
  failures: ActionFailures;
  /** Age of the oldest record that it has not scanned. */
  secondsBehind: number;
}

/** The outcome of running an action for a record, or for those of a test, without storing or sending anything. */
export interface RunTrial {
  error: RunError | undefined;
  /** Tags are resolved to devices. */
  mails: readonly {
    /** Number of the record in the sequence, from 1, whose run sends it. */
    record: number;
    device: string;
    name: string;
    payload: string;
    ttlSeconds?: number;
    replaceKey?: string;
  }[];
  /** Records run, the last of which failed if there is an error. */
  records: number;
  /** Why the test failed that this was of, if it did. */
  reason: string | undefined;
  /** Null: removed. */
  state: readonly { key: string; value: string | null }[];
  log: readonly string[];
  cpuMilliseconds: number;
  wallMilliseconds: number;
}

/** The record or test to try an action on. */
export type TrialInput = { record: TestRecord } | { test: ActionTest };

/** One key of a state; `value`: JSON text. */
export interface StateEntry {
  key: string;
  value: string;
}

/** In the order of the keys. `after`: the last key seen. */
export interface StateQuery {
  after?: string;
  limit: number;
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
  /** Position of the record in its log. */
  position: number;
  kind: RunKind;
  device: string;
  name: string;
  /** When the record was stored. */
  storedAtMs: number;
  version: number;
  attempt: number;
  endedAtMs: number;
  cpuMilliseconds: number;
  wallMilliseconds: number;
  outcome: 'done' | 'failed' | 'dead';
  error: RunError | undefined;
  /** Mails queued for delivery. */
  mails: number;
  /** Results of the first of them, by their ordinals. */
  sent: readonly RunMail[];
}

/** A mail of a run: on its way until its mailbox gave it an id, or refused it. */
export interface RunMail {
  device: string;
  name: string;
  mailId?: string;
  refused?: MailRefusal;
}

export type MailRefusal = 'mailbox_full' | 'fleet_mail_full' | 'device_not_found' | 'not_stored';

/** A run that failed for good, with everything a replay needs. */
export interface ActionDeadLetter extends FailedRecord {
  /** That of the run. */
  number: number;
  attempts: number;
  error: RunError;
  /** The refused mails, after `mail_refused`. The run itself is done; a replay sends only these. */
  refused: readonly {
    device: string;
    name: string;
    reason: MailRefusal;
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
  /** Any of them. */
  devices?: readonly string[];
  outcome?: Run['outcome'];
  text?: string;
}
export type LogQuery = Pick<RunQuery, 'after' | 'limit' | 'devices' | 'text'> & { run?: number };

/** A draft that compiles, and how it does at its own tests. */
export interface PreparedDraft {
  /** The source compiled to JavaScript. */
  code: string;
  tests: readonly TestOutcome[];
}

/**
 * The actions at work on the leader. Every method but `all` and `followed` throws ApiError fleet_not_found or, but for
 * `prepare` and `check`, action_not_found where its path names none.
 */
export interface ActionWork {
  list(fleetId: string): Awaitable<ShownAction[]>;
  /** The actions of all fleets. */
  all(): AsyncIterable<ActionStatus>;
  /** Once everything that was declared before the call is in force. */
  get(fleetId: string, name: string): Promise<ShownAction>;
  /** Settles once everything that was declared before the call is in force. */
  followed(): Promise<void>;
  /**
   * Compiles a checked draft, and tests it. Errors in its types refuse it unless `force`.
   * @throws ApiError invalid_action, unavailable, replaced by a newer one.
   */
  prepare(
    fleetId: string,
    name: string,
    draft: ActionDraft,
    asker: Asker,
    options: { force: boolean },
  ): Promise<PreparedDraft>;
  /**
   * Runs a draft, or else the deployed version, without sending or writing anything: on a record with the state as it
   * is, or on the records of a test with the state that this gives.
   */
  test(
    fleetId: string,
    name: string,
    asker: Asker,
    input: TrialInput,
    draft?: ActionDraft,
  ): Promise<RunTrial>;
  /**
   * The errors in the types of a source, by the schemas of the fleet.
   * @throws ApiError invalid_action, unavailable, replaced by a newer one.
   */
  check(fleetId: string, asker: Asker, code: CheckedCode): Promise<readonly TypeFault[]>;
  /** Processes of the compiler that were lost to a source since the server started. */
  readonly compilerLosses: Readonly<Record<CompilerLossReason, number>>;
  listState(fleetId: string, name: string, query: StateQuery): Awaitable<Page<StateEntry>>;
  /** @throws ApiError state_key_not_found. */
  getState(fleetId: string, name: string, key: string): Awaitable<StateEntry>;
  /** @throws ApiError invalid_body, limit_reached. */
  setState(fleetId: string, name: string, key: string, value: unknown): Promise<StateEntry>;
  /** Deletes one key or, without one, all; returns how many. @throws ApiError state_key_not_found. */
  deleteState(fleetId: string, name: string, key?: string): Promise<number>;
  runs(fleetId: string, name: string, query: RunQuery): Awaitable<Page<Run>>;
  /** @throws ApiError run_not_found. */
  run(fleetId: string, name: string, number: number): Awaitable<Run>;
  logs(fleetId: string, name: string, query: LogQuery): Awaitable<Page<ActionLogLine>>;
}
