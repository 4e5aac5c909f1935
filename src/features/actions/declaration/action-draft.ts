import {
  tagLengthMax,
  testBytesPerActionMax,
  testRecordsPerActionMax,
  testsPerActionMax,
} from '../../../core/bounds.ts';
import type { Settings } from '../../../core/config/settings.ts';
import { ApiError, isUnavailable } from '../../../core/errors.ts';
import { deviceIdPattern, schemaNamePattern } from '../../../core/identity.ts';
import type { SchemaText } from '../../../declarations/fleet.ts';
import type { SchemaChecker } from '../../../declarations/schema-checks/schema-checker.ts';
import type { JsonObject } from '../../../declarations/schemas/payload.ts';
import {
  type ActionDraft,
  type ActionFilter,
  type ActionTest,
  type ActionTrigger,
  recordsOf,
  type TestRecord,
} from './action.ts';
import { type StateLimits, stateRefusalOf } from './state-value.ts';

export const triggersMax = 32;
const filterDevicesMax = 1_000;
const filterTagsMax = 32;
/** Enough for thousands of lines, including a bundled library; each retained version has one. */
export const sourceBytesMax = 262_144;

export interface DraftLimits {
  bodyBytesMax: number;
  schemaBytesMax: number;
  settings: Settings<{ actionMailsMax: number }> & StateLimits;
}

/**
 * Checks everything of a draft but its code and the schema of its filter. A trigger must name a schema of the fleet: a
 * mistyped name would otherwise wait silently for ever.
 * @throws ApiError invalid_action with a sentence.
 */
export function checkDraft(draft: ActionDraft, schemas: readonly SchemaText[], limits: DraftLimits): void {
  if (Buffer.byteLength(draft.source) > sourceBytesMax) {
    throw invalid(`The source is larger than ${sourceBytesMax} bytes in UTF-8.`);
  }
  checkTriggers(draft.on, schemas);
  checkFilter(draft.filter, limits);
  if (draft.tests.length > testsPerActionMax)
    throw invalid(`An action has at most ${testsPerActionMax} tests.`);
  if (draft.tests.flatMap(recordsOf).length > testRecordsPerActionMax)
    throw invalid(`The tests of an action have at most ${testRecordsPerActionMax} records in all.`);
  for (const [index, test] of draft.tests.entries()) checkTest(test, `test ${index + 1}`, limits);
  if (Buffer.byteLength(JSON.stringify(draft.tests)) > testBytesPerActionMax)
    throw invalid(`The tests of an action are at most ${testBytesPerActionMax} bytes of JSON in all.`);
}

/** Checks the record of a test or a trial run. @throws ApiError invalid_action. */
export function checkTestRecord(record: TestRecord, what: string, limits: DraftLimits): void {
  checkDeviceId(record.device, `the record of ${what}`);
  if (record.name !== undefined) checkName(record.name, `the record of ${what}`);
  checkPayload(record.payload, `the record of ${what}`, limits.bodyBytesMax);
}

function checkTriggers(on: readonly ActionTrigger[], schemas: readonly SchemaText[]): void {
  if (on.length < 1 || on.length > triggersMax) {
    throw invalid(`An action listens to 1 to ${triggersMax} schemas of messages, datapoints or replies.`);
  }
  const seen = new Set<string>();
  for (const [index, { kind, schema }] of on.entries()) {
    checkName(schema, `trigger ${index + 1}`);
    const trigger = `${kind} schema ${schema}`;
    if (!['message', 'datapoint', 'reply'].includes(kind)) {
      throw invalid(`Trigger ${index + 1} is neither of messages nor of datapoints nor of replies.`);
    }
    if (seen.has(trigger)) throw invalid(`The ${trigger} is named twice.`);
    seen.add(trigger);
    if (!schemas.some((one) => one.kind === kind && one.name === schema)) {
      throw invalid(`This fleet has no ${trigger}: put the schema first, or correct the name.`);
    }
  }
}

/** Rejects empty lists too, as they would never match. */
function checkFilter({ devices, tags, payload }: ActionFilter, limits: DraftLimits): void {
  if (devices !== undefined) {
    if (devices.length < 1 || devices.length > filterDevicesMax) {
      throw invalid(`A filter of devices has 1 to ${filterDevicesMax} of them.`);
    }
    for (const device of devices) checkDeviceId(device, 'the filter');
  }
  if (tags !== undefined) {
    if (tags.length < 1 || tags.length > filterTagsMax) {
      throw invalid(`A filter of tags has 1 to ${filterTagsMax} of them.`);
    }
    if (tags.some((tag) => tag.length < 1 || tag.length > tagLengthMax)) {
      throw invalid(`A tag is 1 to ${tagLengthMax} characters.`);
    }
  }
  if (payload !== undefined) checkPayload(payload, 'the filter', limits.schemaBytesMax);
}

/** Checks the schema that a filter of payloads is. @throws ApiError invalid_action, unavailable. */
export async function checkPayloadFilter(
  fleetId: string,
  { filter: { payload } }: ActionDraft,
  checker: SchemaChecker,
): Promise<void> {
  if (payload === undefined) return;
  try {
    await checker.check(fleetId, JSON.stringify(payload));
  } catch (error) {
    if (isUnavailable(error)) throw error;
    throw invalid(`The filter of payloads cannot be used: ${(error as Error).message}`);
  }
}

/** Checks a test, which is called `what`. @throws ApiError invalid_action. */
export function checkTest(test: ActionTest, what: string, limits: DraftLimits): void {
  const { record, records, mails = [] } = test;
  if ((record === undefined) === (records === undefined)) {
    throw invalid(`A test has either a record or a list of records; ${what} has both or neither.`);
  }
  const all = recordsOf(test);
  if (all.length < 1 || all.length > testRecordsPerActionMax) {
    throw invalid(`A test has 1 to ${testRecordsPerActionMax} records; ${what} has ${all.length}.`);
  }
  for (const [index, one] of all.entries()) {
    checkTestRecord(one, records === undefined ? what : `${what} at ${index + 1}`, limits);
  }
  checkState(test.state, `the state of ${what}`, limits);
  checkState(test.stateAfter, `the state after ${what}`, limits);
  const { actionMailsMax } = limits.settings.current;
  if (mails.length > actionMailsMax) {
    throw invalid(`The mails of ${what} are more than ${actionMailsMax} (actionMailsMax).`);
  }
  for (const { to, name, payload } of mails) {
    checkDeviceId(to, `a mail of ${what}`);
    checkName(name, `a mail of ${what}`);
    checkPayload(payload, `a mail of ${what}`, limits.bodyBytesMax);
  }
}

function checkState(state: JsonObject = {}, where: string, { settings }: DraftLimits): void {
  const entries = Object.entries(state);
  const { actionStateKeysMax: keysMax } = settings.current;
  if (entries.length > keysMax) {
    throw invalid(`A state has at most ${keysMax} keys (actionStateKeysMax); ${where} has more.`);
  }
  for (const [index, [key, value]] of entries.entries()) {
    const refusal = stateRefusalOf(key, value, settings);
    if (refusal !== undefined) throw invalid(`${refusal} Look at entry ${index + 1} of ${where}.`);
  }
}

function checkDeviceId(id: string, where: string): void {
  if (!deviceIdPattern.test(id)) throw invalid(`A device id is 10 letters and digits; ${where} has another.`);
}

function checkName(name: string, where: string): void {
  if (schemaNamePattern.test(name)) return;
  throw invalid(`A schema name is 1 to 255 letters, digits, _ and -; ${where} has another.`);
}

function checkPayload(payload: JsonObject, where: string, bytesMax: number): void {
  let bytes: number;
  try {
    bytes = Buffer.byteLength(JSON.stringify(payload));
  } catch {
    throw invalid(`The payload of ${where} is nested too deeply.`);
  }
  if (bytes > bytesMax) throw invalid(`The payload of ${where} is larger than ${bytesMax} bytes.`);
}

function invalid(msg: string): ApiError {
  return new ApiError('invalid_action', { msg });
}
