/** A member of a payload that a field of a form can hold. */
export interface FormField {
  name: string;
  kind: 'string' | 'number' | 'integer' | 'boolean' | 'choice';
  isRequired: boolean;
  choices: readonly string[];
  hint: string;
  bounds: Bounds;
}

/** What a schema says of a value that a field can hold to. */
export interface Bounds {
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
}

interface MemberSchema {
  type?: unknown;
  enum?: unknown;
  description?: unknown;
  minimum?: unknown;
  maximum?: unknown;
  minLength?: unknown;
  maxLength?: unknown;
}

/** More members than this are written as JSON. */
const fieldsMax = 40;

/** The fields of a schema of plain members; undefined where only JSON can say it all. */
export function formFieldsOf(schema: unknown): FormField[] | undefined {
  if (typeof schema !== 'object' || schema === null) return undefined;
  const { type, properties, required, ...others } = schema as Record<string, unknown>;
  const isPlain = type === 'object' && typeof properties === 'object' && properties !== null;
  const isCombined = ['allOf', 'anyOf', 'oneOf', '$ref', 'if', 'not'].some((key) => key in others);
  if (!isPlain || isCombined) return undefined;
  const entries = Object.entries(properties as Record<string, MemberSchema>);
  if (entries.length === 0 || entries.length > fieldsMax) return undefined;
  const needed = Array.isArray(required) ? required : [];
  const fields = entries.map(([name, member]) => fieldOf(name, member, needed.includes(name)));
  return fields.every((field) => field !== undefined) ? fields : undefined;
}

function fieldOf(name: string, member: MemberSchema, isRequired: boolean): FormField | undefined {
  const choices = Array.isArray(member.enum) ? member.enum.filter((one) => typeof one === 'string') : [];
  const isChoice = Array.isArray(member.enum) && choices.length === member.enum.length;
  if (member.enum !== undefined && !isChoice) return undefined;
  const kind = isChoice ? 'choice' : member.type;
  const known = ['string', 'number', 'integer', 'boolean', 'choice'] as const;
  const found = known.find((one) => one === kind);
  if (found === undefined) return undefined;
  return {
    name,
    kind: found,
    isRequired,
    choices,
    hint: hintOf(member, found, isRequired),
    bounds: boundsOf(member),
  };
}

function boundsOf(member: MemberSchema): Bounds {
  const bounds: Bounds = {};
  for (const key of ['minimum', 'maximum', 'minLength', 'maxLength'] as const) {
    const bound = member[key];
    if (typeof bound === 'number') bounds[key] = bound;
  }
  return bounds;
}

function hintOf(
  { minimum, maximum, maxLength, description }: MemberSchema,
  kind: string,
  isRequired: boolean,
) {
  const bounds =
    minimum !== undefined && maximum !== undefined
      ? `${minimum} to ${maximum}`
      : minimum !== undefined
        ? `from ${minimum}`
        : maximum !== undefined
          ? `up to ${maximum}`
          : maxLength !== undefined
            ? `${maxLength} characters at most`
            : '';
  const parts = [kind === 'choice' ? '' : kind, bounds, isRequired ? '' : 'optional'];
  const text = parts.filter(Boolean).join(', ');
  return typeof description === 'string' ? `${text}. ${description.slice(0, 200)}` : text;
}

/** A number as JSON writes it: sent as it was typed, for it may have more digits than JavaScript keeps. */
const jsonNumber = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

/** Why a value is not taken, as far as the form can tell: the server holds it against the whole schema. */
export function wrongValue({ kind, bounds }: FormField, text: string): string | undefined {
  if (text === '') return undefined;
  const { minimum, maximum, minLength = 0, maxLength } = bounds;
  if (kind === 'string') {
    const length = [...text].length;
    if (length < minLength) return `At least ${minLength.toLocaleString('en')} characters.`;
    if (maxLength === undefined || length <= maxLength) return undefined;
    return `At most ${maxLength.toLocaleString('en')} characters: it has ${length.toLocaleString('en')}.`;
  }
  if (kind !== 'number' && kind !== 'integer') return undefined;
  if (!jsonNumber.test(text.trim())) return 'A number, without commas or spaces: 3600, 0.5.';
  const value = Number(text);
  if (kind === 'integer' && !Number.isInteger(value)) return 'A whole number.';
  if (minimum !== undefined && value < minimum) return `At least ${minimum.toLocaleString('en')}.`;
  return maximum !== undefined && value > maximum ? `At most ${maximum.toLocaleString('en')}.` : undefined;
}

/** The payload of a form as JSON; a field that is left empty is left out. Undefined: a number is none. */
export function payloadText(
  fields: readonly FormField[],
  values: Readonly<Record<string, string>>,
): string | undefined {
  const members: string[] = [];
  for (const { name, kind } of fields) {
    const value = values[name] ?? '';
    if (value === '') continue;
    const isNumber = kind === 'number' || kind === 'integer';
    if (isNumber && !jsonNumber.test(value.trim())) return undefined;
    const text = isNumber ? value.trim() : kind === 'boolean' ? value : JSON.stringify(value);
    members.push(`${JSON.stringify(name)}: ${text}`);
  }
  return members.length === 0 ? '{}' : `{\n  ${members.join(',\n  ')}\n}`;
}
