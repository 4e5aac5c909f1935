import { parseSpan } from '../../server/clock.ts';
import type { FormField } from './schema-form.ts';
import { payloadText, wrongValue } from './schema-form.ts';
import type { Recipient } from './send-to.ts';

/** A mail that is being written. */
export interface Draft {
  /** A device id, or filters of several devices as in the query bar; not of those that were selected before. */
  to: string;
  name: string;
  /** Written as JSON, or in the fields of its schema. */
  mode: 'json' | 'form';
  json: string;
  fields: readonly FormField[];
  values: Readonly<Record<string, string>>;
  /** A span like `2d`; empty: the fleet's. */
  ttl: string;
  /** Local time as its field has it; empty: now. */
  deliverAt: string;
  /** Key of the mail that it replaces while that waits; empty: none. */
  replaceKey: string;
  /** Devices after which a broadcast pauses; empty: it does not. */
  pauseAfter: string;
}

export function emptyDraft(recipient: Recipient): Draft {
  const to = 'deviceId' in recipient ? recipient.deviceId : '';
  const { name = '', payload: json = '{}' } = recipient.mail ?? {};
  const settings = { ttl: '', deliverAt: '', replaceKey: '', pauseAfter: '' };
  return { to, name, mode: 'json', json, fields: [], values: {}, ...settings };
}

/** The payload as it is sent, byte for byte; undefined while it is none. */
export function draftPayload({ mode, json, fields, values }: Draft): string | undefined {
  if (mode === 'form') return payloadText(fields, values);
  try {
    const value: unknown = JSON.parse(json.trim() === '' ? '{}' : json);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? (json.trim() === '' ? '{}' : json) : undefined;
  } catch {
    return undefined;
  }
}

/** Why the draft cannot be sent yet, whoever gets it. */
export function problemOf(draft: Draft): string | undefined {
  if (!/^[A-Za-z0-9_-]{1,255}$/.test(draft.name)) return 'A mail has a name: letters, digits, _ and -.';
  if (draft.ttl !== '' && parseSpan(draft.ttl) === undefined)
    return 'A span of life is like 90min, 12h or 7d.';
  if (!/^[A-Za-z0-9_-]{0,64}$/.test(draft.replaceKey)) return 'A key is 1 to 64 letters, digits, _ and -.';
  if (draft.mode === 'json')
    return draftPayload(draft) === undefined ? 'The payload is not a JSON object.' : undefined;
  const wrong = draft.fields.find((field) => wrongValue(field, draft.values[field.name] ?? '') !== undefined);
  if (wrong) return `${wrong.name}: ${wrongValue(wrong, draft.values[wrong.name] ?? '')}`;
  const missing = draft.fields.find(({ name, isRequired }) => isRequired && !draft.values[name]);
  return missing ? `The payload lacks the field ${missing.name}.` : undefined;
}

type MailSettings = { ttl_seconds?: number; deliver_at?: string; replace_key?: string };

/** Settings of the mail as the API takes them. */
export function settingsOf({ ttl, deliverAt, replaceKey }: Draft): MailSettings {
  const spanMs = parseSpan(ttl);
  const date = new Date(deliverAt);
  return {
    ...(spanMs !== undefined && { ttl_seconds: Math.round(spanMs / 1_000) }),
    ...(deliverAt !== '' && !Number.isNaN(date.getTime()) && { deliver_at: date.toISOString() }),
    ...(replaceKey !== '' && { replace_key: replaceKey }),
  };
}
