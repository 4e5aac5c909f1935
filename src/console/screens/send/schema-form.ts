/** A member of a payload that a field of a form can hold. */
export interface FormField {
  name: string;
  kind: 'string' | 'number' | 'integer' | 'boolean' | 'choice';
  isRequired: boolean;
  choices: readonly string[];
  hint: string;
}

interface MemberSchema {
  type?: unknown;
  enum?: unknown;
  description?: unknown;
  minimum?: unknown;
  maximum?: unknown;
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
  return { name, kind: found, isRequired, choices, hint: hintOf(member, found, isRequired) };
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
