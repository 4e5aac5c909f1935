import { isAscii, isUtf8 } from 'node:buffer';
import { ApiError } from '../../core/errors.ts';
import { isNestedOver, jsonDepthMax } from '../../core/json-shape.ts';

export type JsonObject = Record<string, unknown>;

/** A message or mail without fields, as stored and delivered (D13). It crosses threads: no view of Node's pool. */
export const emptyPayload: Buffer = Buffer.alloc(2, '{}');

/**
 * Parses a body for checking; the bytes themselves are stored (D11). Refuses nesting deeper than `jsonDepthMax`.
 * @throws ApiError invalid_json for what is not JSON or not UTF-8, or nested too deeply.
 */
export function parseJson(bytes: Buffer): unknown {
  checkDepth(bytes);
  return parseDeepJson(bytes);
}

/** @throws ApiError invalid_json */
export function checkDepth(bytes: Buffer): void {
  if (!isNestedOver(jsonDepthMax, bytes)) return;
  throw new ApiError('invalid_json', { msg: `The body is nested over ${jsonDepthMax} levels.` });
}

/** Parses a body whatever its depth, for who checks that of its parts. @throws ApiError invalid_json */
export function parseDeepJson(bytes: Buffer): unknown {
  // Most bodies are ASCII, which needs no decoding.
  const encoding = isAscii(bytes) ? 'latin1' : 'utf8';
  if (encoding === 'utf8' && !isUtf8(bytes)) throw new ApiError('invalid_json');
  try {
    return JSON.parse(bytes.toString(encoding));
  } catch {
    throw new ApiError('invalid_json');
  }
}

// A sync may have hundreds of records that are refused for the same: they share the error.
const notAnObject = new ApiError('invalid_body', { msg: 'The body must be a JSON object.' });
const noField = new ApiError('invalid_body', { msg: 'A datapoint must have at least one field.' });

function asObject(value: unknown): JsonObject {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonObject;
  throw notAnObject;
}

/** Parses a schema that is to be stored. @throws ApiError invalid_json, invalid_schema. */
export function parseSchema(bytes: Buffer): JsonObject {
  const value = parseJson(bytes);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ApiError('invalid_schema', { msg: 'A schema is a JSON object.' });
  }
  return value as JsonObject;
}

/** A datapoint: an object with at least one member (D10). @throws ApiError invalid_body */
export function asDatapoint(value: unknown): JsonObject {
  const object = asObject(value);
  if (isEmpty(object)) throw noField;
  return object;
}

/** A message: an object (D10); undefined for none and for `null`, which both count as `{}`. @throws ApiError invalid_body */
export function asMessage(value: unknown): JsonObject | undefined {
  return value === undefined || value === null ? undefined : asObject(value);
}

/** @throws ApiError invalid_json, invalid_body */
export function parseDatapoint(bytes: Buffer): JsonObject {
  return asDatapoint(parseJson(bytes));
}

/** Parses a message, or no body. @throws ApiError invalid_json, invalid_body */
export function parseMessage(bytes: Buffer): JsonObject | undefined {
  return bytes.length === 0 ? undefined : asMessage(parseJson(bytes));
}

export function isEmpty(object: JsonObject): boolean {
  for (const _member in object) return false;
  return true;
}
