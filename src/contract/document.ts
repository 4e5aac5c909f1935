import { type Static, type TObjectOptions, type TProperties, type TSchema, Type } from 'typebox';
import { nameLengthMax, tagLengthMax, tagsMax } from '../core/bounds.ts';
import { deviceIdPattern, fleetIdPattern, schemaNamePattern } from '../core/identity.ts';
import { plainCharacter } from '../core/plain-text.ts';

/** A member that may be null: the first of what documents and parameters of the admin API share. */
export const nullable = <T extends 'string' | 'integer'>(type: T, options: object = {}) =>
  Type.Unsafe<(T extends 'string' ? string : number) | null>({ type: [type, 'null'], ...options });

/** One of some words, with its type, which validators that compare the items of an array want to know. */
export function wordOf<const T extends string>(words: readonly T[], options: object = {}) {
  return Type.Unsafe<T>({ type: 'string', enum: [...words], ...options });
}

/** An object without further members: a mistyped one of a body must not be ignored. */
export function closedObject<P extends TProperties>(properties: P, options: TObjectOptions = {}) {
  return Type.Object(properties, { ...options, additionalProperties: false });
}

/** The same, with each member optional. */
export function closedPartial<P extends TProperties>(properties: P, options: TObjectOptions = {}) {
  return Type.Partial(Type.Object(properties), { ...options, additionalProperties: false });
}

export const fleetId = Type.String({ pattern: fleetIdPattern.source });
export const deviceId = Type.String({ pattern: deviceIdPattern.source });
/** Pattern of names and tags. */
export const plainPattern = `^${plainCharacter}*$`;
export const name = Type.String({ maxLength: nameLengthMax, pattern: plainPattern });
export const tag = Type.String({ minLength: 1, maxLength: tagLengthMax, pattern: plainPattern });
export const tags = Type.Array(tag, { maxItems: tagsMax, uniqueItems: true });
/** Any object; an answer omits members that its schema does not describe. */
export const jsonObject = Type.Unsafe<Record<string, unknown>>({
  type: 'object',
  additionalProperties: true,
});

export const time = Type.String({ description: 'ISO 8601, UTC' });
/** Time of a record whose device sent `Recorded-At` (D25). */
export const recordedAt = Type.String({
  description: 'When the device recorded it, if it said so. ISO 8601, UTC',
});
/** RFC 3339 with a time zone, without which a time is ambiguous. Seconds are optional. */
export const timePattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/;
/** Says what a text must be that does not match one of the patterns of the contract, for its error. */
export const patternWords: ReadonlyMap<string, string> = new Map([
  [fleetIdPattern.source, 'must be 8 letters or digits'],
  [deviceIdPattern.source, 'must be 10 letters or digits'],
  [schemaNamePattern.source, 'must be 1 to 255 letters, digits, _ or -'],
  [timePattern.source, 'must be a time in ISO 8601 with its zone, like 2026-01-31T08:00:00Z'],
  [plainPattern, 'must have no control characters'],
]);
/** A time as input. */
export function timeText(description: string) {
  return Type.String({ pattern: timePattern.source, description: `${description} ISO 8601 with its zone.` });
}
export const expiresAt = Type.Optional(
  nullable('string', { pattern: timePattern.source, description: 'Absent or null: never.' }),
);

export const fleetPath = Type.Object({ fleet_id: Type.String() });
export const devicePath = Type.Object({ fleet_id: Type.String(), device_id: Type.String() });
/** Path of what has a name in its fleet: an action, a consumer, a forwarder. */
export const namedPath = Type.Object({ fleet_id: Type.String(), name: Type.String() });
/** Pauses or resumes what reads the records of a fleet. */
export const pauseBody = closedObject({ enabled: Type.Boolean({ description: 'False pauses it.' }) });
export const pageLimit = Type.Integer({ minimum: 1, maximum: 1_000, default: 100 });
/** A body of bytes, kept as they are sent (D11); null without one. To a client it is any document. */
export function bytesBody(description: string) {
  return Type.Unsafe<Uint8Array | null | undefined>({ description });
}
/** A query parameter that is repeated for each value. */
export function repeatedParameter<T extends TSchema>(item: T, maxItems: number, description: string) {
  return Type.Optional(Type.Array(item, { minItems: 1, maxItems, description }));
}

/** A member of a body that is one value or several, as its query parameter may be repeated. */
export function oneOrSeveral<T extends TSchema>(item: T, maxItems: number, description: string) {
  return Type.Union([item, Type.Array(item, { minItems: 1, maxItems })], { description });
}

export function listOf<T extends TSchema>(item: T) {
  return Type.Object({
    items: Type.Array(item),
    next: nullable('string', { description: 'Pass as `after` for the next page; null on the last.' }),
  });
}
/** A page of a list, as `listOf` describes it. */
export interface ListDocument<T> {
  items: T[];
  next: string | null;
}

const errorDocument = Type.Object({
  error: Type.String(),
  msg: Type.String(),
  errors: Type.Optional(Type.Array(Type.Object({ path: Type.String(), msg: Type.String() }))),
  /** Reasons why a server is not ready, while it starts or stops, as in /readyz. */
  reasons: Type.Optional(Type.Array(Type.Object({ reason: Type.String(), msg: Type.String() }))),
});
export type ErrorDocument = Static<typeof errorDocument>;
/** Error answers of every route. */
export const errorAnswers = { '4xx': errorDocument, '5xx': errorDocument };
