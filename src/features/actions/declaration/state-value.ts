import { actionStateKeyLengthMax } from '../../../core/bounds.ts';
import type { Settings } from '../../../core/config/settings.ts';
import { isNestedOver, jsonDepthMax } from '../../../core/json-shape.ts';

/** Limits of an action's state: the bytes of a value are those of its JSON. */
export type StateLimits = Settings<{ actionStateKeysMax: number; actionStateValueBytesMax: number }>;

/** True if a state may have this key. */
export function isStateKey(key: unknown): key is string {
  return (
    typeof key === 'string' && key.length > 0 && key.length <= actionStateKeyLengthMax && !/\p{Cs}/u.test(key)
  );
}

/** A sentence that says why no state has this entry, whose value is JSON; undefined if one may. */
export function stateRefusalOf(key: string, value: unknown, limits: StateLimits): string | undefined {
  if (!isStateKey(key)) return `A key is a text of 1 to ${actionStateKeyLengthMax} characters.`;
  if (value === null) return 'Null is no value: it stands for a key that is not there.';
  const { actionStateValueBytesMax: bytesMax } = limits.current;
  const text = textOf(value);
  if (text === undefined || isNestedOver(jsonDepthMax, Buffer.from(text))) {
    return `A value is nested at most ${jsonDepthMax} levels.`;
  }
  if (Buffer.byteLength(text) <= bytesMax) return undefined;
  return `A value has at most ${bytesMax} bytes as JSON (actionStateValueBytesMax).`;
}

/** Undefined for what is nested so deeply that it cannot be written. */
function textOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}
