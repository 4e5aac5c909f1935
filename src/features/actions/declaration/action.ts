import type { JsonObject } from '../../../declarations/schemas/payload.ts';
import type { RunKind } from '../../../domain/records/record.ts';

/** Records of this kind and schema run the action. */
export interface ActionTrigger {
  kind: RunKind;
  schema: string;
}

/** All conditions that are present must hold; checked without running any code. */
export interface ActionFilter {
  /** Ids; the record comes from one of these devices. */
  devices?: readonly string[];
  /** The device has one of these tags. */
  tags?: readonly string[];
  /** JSON Schema 2020-12 that the payload matches. */
  payload?: JsonObject;
}

/** A record as a test has it. `kind` and `name` default to those of the first trigger. */
export interface TestRecord {
  device: string;
  kind?: RunKind;
  name?: string;
  payload: JsonObject;
}

/** One record or a sequence, which each new version is tested with before it is deployed. All runs must succeed. */
export interface ActionTest {
  /** Has either this or `records`. */
  record?: TestRecord;
  records?: readonly TestRecord[];
  /** The state before the first run; by default empty. */
  state?: JsonObject;
  /** The mails the runs must send, in this order, if present. */
  mails?: readonly { to: string; name: string; payload: JsonObject }[];
  /** The whole state that the last run must leave, if present. */
  stateAfter?: JsonObject;
}

/** The records of a test, in order. */
export function recordsOf({ record, records = [] }: ActionTest): readonly TestRecord[] {
  return record === undefined ? records : [record, ...records];
}

/** An action as an operator deploys it. Retained whole under its number, so that a rollback restores all of it. */
export interface ActionDraft {
  language: 'javascript' | 'typescript';
  source: string;
  on: readonly ActionTrigger[];
  filter: ActionFilter;
  tests: readonly ActionTest[];
}

export interface ActionVersion extends ActionDraft {
  number: number;
  createdAtMs: number;
  /** The source compiled to JavaScript. */
  code: string;
}

/** What runs of a version. The rest is on disk alone, for a hundred actions of a fleet may have some 50 MB of it. */
export type RunningVersion = Omit<ActionVersion, 'source' | 'tests'>;

/** Position where an action begins in the logs, which the leader makes so once for each id. */
export interface ActionBegin {
  /** UUIDv7. */
  id: string;
  /** Ends of the logs, as the node that declared it saw them. */
  logEnds: readonly number[];
}

/** A version that an action can be rolled back to. */
export interface RetainedVersion {
  number: number;
  createdAtMs: number;
  /** Name of the token that deployed it. Absent: not known. */
  by?: string;
}

export interface Action {
  /** UUIDv7; an action that is deleted and created again gets a new one. */
  id: string;
  fleetId: string;
  /** Has the format of a schema name (D2). */
  name: string;
  createdAtMs: number;
  enabled: boolean;
  /** When it was last enabled, or created as it is. */
  begin: ActionBegin;
  /** Absent: the configured default. */
  runsPerSecondMax?: number;
  /** The current version. */
  version: number;
  /** Retained versions, oldest first. */
  versions: readonly RetainedVersion[];
}
