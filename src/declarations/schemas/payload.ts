import { isAscii, isUtf8 } from 'node:buffer';
import { ApiError } from '../../core/errors.ts';
import { isNestedOver, jsonDepthMax } from '../../core/json-depth.ts';

export type JsonObject = Record<string, unknown>;

/** How a message or mail without fields is stored and delivered (D13). Crosses threads: no view of Node's pool. */
export const emptyPayload: Buffer = Buffer.alloc(2, '{}');

/**
 * The value of a body for checking; what is stored is always the bytes themselves (D11). What is nested deeper than
 * `jsonDepthMax` is refused.
 * @throws ApiError invalid_json for what is not JSON or not UTF-8, or nested too deeply.
 */
export function parseJson(bytes: Buffer): unknown {
  if (isNestedOver(jsonDepthMax, bytes)) {
    throw new ApiError('invalid_json', {
      msg: `The body is nested over ${jsonDepthMax} levels.`,
    });
  }
  // Most bodies are ASCII, which becomes a string without decoding.
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

/** D10: an object with at least one member. */
export function parseDatapoint(bytes: Buffer): JsonObject {
  const object = asObject(parseJson(bytes));
  if (isEmpty(object))
    throw new ApiError('invalid_body', { msg: 'A datapoint must have at least one field.' });
  return object;
}

/** D10: an object; or undefined for no body and for `null`, which both count as `{}`. */
export function parseMessage(bytes: Buffer): JsonObject | undefined {
  if (bytes.length === 0) return undefined;
  const value = parseJson(bytes);
  return value === null ? undefined : asObject(value);
}

export function isEmpty(object: JsonObject): boolean {
  for (const _member in object) return false;
  return true;
}
