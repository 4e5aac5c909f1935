import { tagLengthMax } from '../../../core/bounds.ts';
import { ApiError } from '../../../core/errors.ts';
import { deviceIdPattern, schemaNamePattern } from '../../../core/identity.ts';
import type { SchemaText } from '../../../declarations/fleet.ts';
import type { JsonObject } from '../../../declarations/schemas/payload.ts';
import { checkSchema } from '../../../declarations/schemas/schema.ts';
import type { ActionDraft, ActionFilter, ActionTest, ActionTrigger } from './action.ts';

const triggersMax = 32;
const filterDevicesMax = 1_000;
const filterTagsMax = 32;
export const actionTestsMax = 20;
/** Enough for thousands of lines, including a bundled library; each retained version has one. */
export const sourceBytesMax = 262_144;

export interface DraftLimits {
  actionMailsMax: number;
  bodyBytesMax: number;
  schemaBytesMax: number;
  schemaStepsMax: number;
}

/**
 * Checks everything of a draft but its code. A trigger must name a schema of the fleet: a mistyped name would otherwise
 * wait silently for ever.
 * @throws ApiError invalid_action with a sentence.
 */
export function checkDraft(draft: ActionDraft, schemas: readonly SchemaText[], limits: DraftLimits): void {
  if (Buffer.byteLength(draft.source) > sourceBytesMax) {
    throw invalid(`The source is larger than ${sourceBytesMax} bytes in UTF-8.`);
  }
  checkTriggers(draft.on, schemas);
  checkFilter(draft.filter, limits);
  if (draft.tests.length > actionTestsMax) throw invalid(`An action has at most ${actionTestsMax} tests.`);
  for (const [index, test] of draft.tests.entries()) checkTest(test, `test ${index + 1}`, limits);
}

/** Checks the record of a test or a trial run. @throws ApiError invalid_action. */
export function checkTestRecord(record: ActionTest['record'], what: string, limits: DraftLimits): void {
  checkDeviceId(record.device, `the record of ${what}`);
  if (record.name !== undefined) checkName(record.name, `the record of ${what}`);
  checkPayload(record.payload, `the record of ${what}`, limits.bodyBytesMax);
}

function checkTriggers(on: readonly ActionTrigger[], schemas: readonly SchemaText[]): void {
  if (on.length < 1 || on.length > triggersMax) {
    throw invalid(`An action listens to 1 to ${triggersMax} schemas of messages or datapoints.`);
  }
  const seen = new Set<string>();
  for (const [index, { kind, schema }] of on.entries()) {
    checkName(schema, `trigger ${index + 1}`);
    const trigger = `${kind} schema ${schema}`;
    if (!['message', 'datapoint'].includes(kind)) {
      throw invalid(`Trigger ${index + 1} is neither of messages nor of datapoints.`);
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
  if (payload === undefined) return;
  checkPayload(payload, 'the filter', limits.schemaBytesMax);
  try {
    checkSchema(payload, limits.schemaStepsMax);
  } catch (error) {
    throw invalid(`The filter of payloads cannot be used: ${(error as Error).message}`);
  }
}

function checkTest({ record, mails = [] }: ActionTest, what: string, limits: DraftLimits): void {
  checkTestRecord(record, what, limits);
  if (mails.length > limits.actionMailsMax) {
    throw invalid(`The mails of ${what} are more than ${limits.actionMailsMax} (actionMailsMax).`);
  }
  for (const { to, name, payload } of mails) {
    checkDeviceId(to, `a mail of ${what}`);
    checkName(name, `a mail of ${what}`);
    checkPayload(payload, `a mail of ${what}`, limits.bodyBytesMax);
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
