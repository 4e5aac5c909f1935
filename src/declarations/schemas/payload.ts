import { isAscii, isUtf8 } from 'node:buffer';
import { ApiError } from '../../core/errors.ts';
import { isNestedOver, jsonDepthMax } from '../../core/json-depth.ts';

export type JsonObject = Record<string, unknown>;

/** A message or mail without fields, as stored and delivered (D13). It crosses threads: no view of Node's pool. */
export const emptyPayload: Buffer = Buffer.alloc(2, '{}');

/**
 * Parses a body for checking; the bytes themselves are stored (D11). Refuses nesting deeper than `jsonDepthMax`.
 * @throws ApiError invalid_json for what is not JSON or not UTF-8, or nested too deeply.
 */
export function parseJson(bytes: Buffer): unknown {
  if (isNestedOver(jsonDepthMax, bytes)) {
    throw new ApiError('invalid_json', {
      msg: `The body is nested over ${jsonDepthMax} levels.`,
    });
  }
  // Most bodies are ASCII, which needs no decoding.
  const encoding = isAscii(bytes) ? 'latin1' : 'utf8';
  if (encoding === 'utf8' && !isUtf8(bytes)) throw new ApiError('invalid_json');
  try {
    return JSON.parse(bytes.toString(encoding));
  } catch {
    throw new ApiError('invalid_json');
  }
}

function asObject(value: unknown): JsonObject {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonObject;
  throw new ApiError('invalid_body', { msg: 'The body must be a JSON object.' });
}

/** Parses a schema that is to be stored. @throws ApiError invalid_json, invalid_schema. */
export function parseSchema(bytes: Buffer): JsonObject {
  const value = parseJson(bytes);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ApiError('invalid_schema', { msg: 'A schema is a JSON object.' });
  }
  return value as JsonObject;
}

/** Parses a datapoint: an object with at least one member (D10). */
export function parseDatapoint(bytes: Buffer): JsonObject {
  const object = asObject(parseJson(bytes));
  if (isEmpty(object))
    throw new ApiError('invalid_body', { msg: 'A datapoint must have at least one field.' });
  return object;
}

/** Parses a message: an object (D10); undefined for no body and for `null`, which both count as `{}`. */
export function parseMessage(bytes: Buffer): JsonObject | undefined {
  if (bytes.length === 0) return undefined;
  const value = parseJson(bytes);
  return value === null ? undefined : asObject(value);
}

export function isEmpty(object: JsonObject): boolean {
  for (const _member in object) return false;
  return true;
}
