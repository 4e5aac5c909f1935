import type { JsonObject } from '../../../declarations/schemas/payload.ts';

/** Records of this kind and schema run the action. */
export interface ActionTrigger {
  kind: 'message' | 'datapoint';
  schema: string;
}

/** All that is given must hold; checked without running any code. */
export interface ActionFilter {
  /** The record is of one of these devices, by id. */
  devices?: readonly string[];
  /** Its device has one of these tags. */
  tags?: readonly string[];
  /** JSON Schema 2020-12 that its payload matches. */
  payload?: JsonObject;
}

/** A record that every new version is run against before it is deployed. */
export interface ActionTest {
  /** `kind` and `name` are those of the first trigger unless given. */
  record: { device: string; kind?: 'message' | 'datapoint'; name?: string; payload: JsonObject };
  /** What the run must send, in this order. Not given: it must end without an error. */
  mails?: readonly { to: string; name: string; payload: JsonObject }[];
}

/** What an operator puts; kept whole under its number, so that going back brings all of it back. */
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
  /** The source as JavaScript. */
  code: string;
}

export interface Action {
  /** UUIDv7: an action that is deleted and put again has another. */
  id: string;
  fleetId: string;
  /** As a schema's (D2). */
  name: string;
  createdAtMs: number;
  enabled: boolean;
  /** Absent: the configuration's. */
  runsPerSecondMax?: number;
  /** The one that runs. */
  version: number;
  /** Those that are kept, oldest first. */
  versions: readonly { number: number; createdAtMs: number }[];
}
