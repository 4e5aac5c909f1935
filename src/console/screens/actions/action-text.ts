import type { ActionDocument, ActionVersionDocument } from '../../../contract/action.ts';
import { triggerText } from '../../../contract/columns/action.ts';

/** An action as it is written in the console: texts, as somebody types them. */
export interface ActionText {
  language: 'javascript' | 'typescript';
  source: string;
  /** Each as `message:NAME` or `datapoint:NAME`. */
  on: readonly string[];
  devices: readonly string[];
  tags: readonly string[];
  /** JSON Schema of the payloads; empty: any. */
  where: string;
  /** A JSON list. */
  tests: string;
  /** Empty: as it is. `default`: the configured one. */
  rate: string;
  /** True to deploy a new action without running it. */
  isDisabled: boolean;
  /** Version that it was begun from; 0 for a new one. */
  base: number;
}

/** Schemas, devices or tags that a sentence names; the rest it counts. */
const wordsNamed = 3;

const newSource = `import type { Action } from 'fleetpost/action';

const action: Action = async (record, fleet) => {
  fleet.log(record.device, record.payload);
  // A mail: await fleet.send(record.device, 'name', { on: true });
};

export default action;
`;

/** A new action before anything is typed. */
export const newAction: ActionText = {
  language: 'typescript',
  source: newSource,
  on: [],
  devices: [],
  tags: [],
  where: '',
  tests: '[]',
  rate: '',
  isDisabled: false,
  base: 0,
};

/** A version as it is edited. */
export function textOf(version: ActionVersionDocument): ActionText {
  const { devices = [], tags = [], payload } = version.filter;
  return {
    language: version.language,
    source: version.source,
    on: version.on.map(({ kind, schema }) => `${kind}:${schema}`),
    devices,
    tags,
    where: payload === undefined ? '' : JSON.stringify(payload, null, 2),
    tests: JSON.stringify(version.tests, null, 2),
    rate: '',
    isDisabled: false,
    base: version.version,
  };
}

const triggerKinds = ['datapoint', 'message', 'reply'] as const;

/** A trigger of the text `datapoint:NAME`. */
export function triggerIn(text: string): { kind: (typeof triggerKinds)[number]; schema: string } {
  const at = text.indexOf(':');
  const kind = triggerKinds.find((one) => one === text.slice(0, at)) ?? 'message';
  return { kind, schema: text.slice(at + 1) };
}

/** Says what makes an action run, in a sentence. */
export function runsForText({
  enabled,
  on,
  filter,
}: Pick<ActionDocument, 'enabled' | 'on' | 'filter'>): string {
  if (!enabled) return 'It is disabled, and runs for nothing until it is enabled.';
  const { devices, tags, payload } = filter;
  const listed = (all: readonly string[], word: string): string =>
    all.length > wordsNamed
      ? `${all.slice(0, wordsNamed).join(', ')} or ${all.length - wordsNamed} other ${word}`
      : all.join(' or ');
  const parts = [
    `It runs for each ${listed(
      on.map(({ kind, schema }) => `${kind} ${schema}`),
      'schemas',
    )}`,
    devices && `of ${listed(devices, 'devices')}`,
    tags && `of a device with the tag ${listed(tags, 'tags')}`,
    payload && 'whose payload fits its filter',
  ];
  return `${parts.filter((part) => part !== undefined).join(', ')}, from now on.`;
}

/** Parses JSON of this shape; undefined if it is none. */
function parsed(text: string, isShaped: (value: unknown) => boolean): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return isShaped(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

const isObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The tests as their texts, each to be sent as it was written; undefined while they are no list. */
export function testsIn({ tests }: ActionText): unknown[] | undefined {
  return tests.trim() === '' ? [] : (parsed(tests, Array.isArray) as unknown[] | undefined);
}

const sourceBytesMax = 262_144;

/** Why it cannot be deployed yet. */
export function actionProblem(text: ActionText): string | undefined {
  if (text.source.trim() === '') return 'There is no code yet.';
  if (new Blob([text.source]).size > sourceBytesMax) return 'The source is larger than 256 KiB.';
  if (text.on.length === 0) return 'Which records run it? Choose one schema at least.';
  if (text.where.trim() !== '' && parsed(text.where, isObject) === undefined)
    return 'The filter of payloads is no JSON object.';
  if (testsIn(text) === undefined) return 'The tests are no JSON list.';
  if (text.rate !== '' && text.rate !== 'default' && !/^[1-9]\d{0,6}$/.test(text.rate))
    return 'Runs a second are a number from 1 to 1,000,000, or “default”.';
  return undefined;
}

/** The members of a JSON text, `fields` as they are and `raw` as they were written. */
function objectText(fields: object, raw: Readonly<Record<string, string>>): string {
  const members = Object.entries(raw).map(([key, value]) => `${JSON.stringify(key)}:${value}`);
  const front = JSON.stringify(fields).slice(1, -1);
  return `{${[...(front === '' ? [] : [front]), ...members].join(',')}}`;
}

/** The body that deploys it: all fields, so that what is seen is what runs. */
export function deploymentBody(text: ActionText, isNew: boolean, isForced: boolean): string {
  const { language, source, on, devices, tags, where, tests, rate, isDisabled } = text;
  const filter = objectText(
    { devices: devices.length > 0 ? devices : null, tags: tags.length > 0 ? tags : null },
    { payload: where.trim() === '' ? 'null' : where },
  );
  const fields = {
    language,
    source,
    on: on.map(triggerIn),
    ...(rate !== '' && { runs_per_second_max: rate === 'default' ? null : Number(rate) }),
    ...(isNew && isDisabled && { enabled: false }),
    ...(isForced && { force: true }),
  };
  return objectText(fields, { filter, tests: tests.trim() === '' ? '[]' : tests });
}

/** A record that an action is tried on, as it is typed. */
export interface RecordText {
  device: string;
  on: string;
  payload: string;
}

/** Why an action cannot be tried on it yet. */
export function recordProblem({ device, on, payload }: RecordText): string | undefined {
  if (!/^[A-Za-z0-9]{10}$/.test(device)) return 'Of which device? An id is 10 letters or digits.';
  if (on === '') return 'Of which schema?';
  return parsed(payload, isObject) === undefined ? 'The payload is no JSON object.' : undefined;
}

/** A record as the API takes it, its payload byte for byte. */
export function recordBody({ device, on, payload }: RecordText): string {
  const { kind, schema } = triggerIn(on);
  return objectText({ device, kind, name: schema }, { payload });
}

/** The body that tries the code on a record, or on a test that is JSON. */
export function trialBodyText(
  { language, source, on }: ActionText,
  input: { record: RecordText } | { test: string },
): string {
  const draft = JSON.stringify({ language, source, on: on.map(triggerIn) });
  return 'record' in input
    ? `{"record":${recordBody(input.record)},"draft":${draft}}`
    : `{"test":${input.test},"draft":${draft}}`;
}

/** Words of `fleetpost action put`. */
export function putWords(fleetId: string, name: string, text: ActionText): string[] {
  const extension = text.language === 'typescript' ? 'ts' : 'js';
  return [
    ...['action', 'put', name, `${name}.${extension}`, '--fleet', fleetId],
    ...text.on.flatMap((one) => ['--on', triggerText(triggerIn(one))]),
    ...text.devices.flatMap((one) => ['--device', one]),
    ...text.tags.flatMap((one) => ['--tag', one]),
    ...(text.where.trim() === '' ? [] : ['--where', 'where.json']),
    ...((testsIn(text)?.length ?? 0) === 0 ? [] : ['--test', 'tests.json']),
    ...(/^\d+$/.test(text.rate) ? ['--runs-per-second', text.rate] : []),
  ];
}

/** JSON with its members in one order, to compare what the server stored with what was typed. */
function canonical(text: string): string {
  const sorted = (_key: string, value: unknown): unknown =>
    isObject(value)
      ? Object.fromEntries(Object.entries(value as object).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value;
  try {
    return text.trim() === '' ? '' : JSON.stringify(JSON.parse(text), sorted);
  } catch {
    return text;
  }
}

/** True if both would deploy the same. */
export function isSameAction(a: ActionText, b: ActionText): boolean {
  const comparable = ({ where, tests, base: _, ...rest }: ActionText): string =>
    JSON.stringify({ ...rest, where: canonical(where), tests: canonical(tests) || '[]' });
  return comparable(a) === comparable(b);
}
