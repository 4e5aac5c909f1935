import { typescriptLanguage } from '@codemirror/lang-javascript';
import { writeExactly } from '../server/exact-json.ts';

/** Type of an expression, as far as completion knows: one of the API's interfaces, or values that fit a schema. */
export type Shape = { api: string } | { schemas: readonly unknown[] };

export interface Member {
  name: string;
  isMethod: boolean;
  /** Its type in a few words. */
  detail: string;
  /** Description by its author. */
  info: string;
  shape: Shape | undefined;
}

/** Members of the interfaces that an action is written against, by their names. */
export type ApiShapes = ReadonlyMap<string, readonly Member[]>;

/** Schemas of a fleet are as large as their authors want. */
const membersMax = 500;
const detailLengthMax = 80;
const infoLengthMax = 400;

/** Reads the interfaces of a TypeScript source. Members of type `Payload` are those of the fleet's schemas. */
export function readApi(text: string): ApiShapes {
  const shapes = new Map<string, Member[]>();
  const names: string[] = [];
  let comment = '';
  let current: Member[] | undefined;
  typescriptLanguage.parser.parse(text).iterate({
    enter({ name, from, to, node }) {
      if (name === 'InterfaceDeclaration') {
        const title = node.getChild('TypeDefinition');
        const own: Member[] = [];
        if (title) {
          names.push(text.slice(title.from, title.to));
          shapes.set(text.slice(title.from, title.to), own);
        }
        current = own;
      } else if (name === 'BlockComment') comment = commentText(text.slice(from, to));
      else if (name === 'PropertyType' || name === 'MethodType') {
        const title = node.getChild('PropertyDefinition');
        const type = node.getChild('TypeAnnotation');
        if (!title || !type) return false;
        const end = text.slice(type.from, type.to).replace(/^:\s*/, '');
        const parameters = node.getChild('ParamList');
        current?.push({
          name: text.slice(title.from, title.to),
          isMethod: name === 'MethodType',
          detail: (parameters
            ? text.slice(parameters.from, parameters.to) + (end && `: ${end}`)
            : end
          ).replace(/\s+/g, ' '),
          info: comment,
          shape: { api: end },
        });
        comment = '';
        return false;
      }
      return undefined;
    },
  });
  return new Map(
    [...shapes].map(([one, members]) => [
      one,
      members.map((member) => ({ ...member, shape: shapeNamed(member.shape, names) })),
    ]),
  );
}

/** The interface that a type is about: of `Promise<Device | null>` it is Device. */
function shapeNamed(shape: Shape | undefined, names: readonly string[]): Shape | undefined {
  if (shape === undefined || !('api' in shape)) return shape;
  const word = (shape.api.match(/\w+/g) ?? []).find((one) => one === 'Payload' || names.includes(one));
  return word === undefined ? undefined : { api: word };
}

function commentText(comment: string): string {
  return comment
    .replace(/^\/\*\*?|\*\/$/g, '')
    .replace(/^\s*\* ?/gm, '')
    .trim();
}

type SchemaObject = Record<string, unknown>;

function isObject(value: unknown): value is SchemaObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A schema with those that it is put together from. */
function partsOf(schema: unknown, depth = 0): SchemaObject[] {
  if (!isObject(schema) || depth > 4) return [];
  const combined = ['allOf', 'anyOf', 'oneOf'].flatMap((key) =>
    Array.isArray(schema[key]) ? (schema[key] as unknown[]) : [],
  );
  return [schema, ...combined.flatMap((one) => partsOf(one, depth + 1))];
}

/** Members that a value may have which fits one of these schemas. */
export function membersOfSchemas(schemas: readonly unknown[]): Member[] {
  const found = new Map<string, { schemas: unknown[]; isRequired: boolean }>();
  for (const part of schemas.flatMap((one) => partsOf(one))) {
    const required = Array.isArray(part.required) ? part.required : [];
    const { properties } = part;
    for (const [name, member] of Object.entries(isObject(properties) ? properties : {})) {
      const known = found.get(name) ?? { schemas: [], isRequired: false };
      if (found.size >= membersMax && !found.has(name)) continue;
      known.schemas.push(member);
      known.isRequired ||= required.includes(name);
      found.set(name, known);
    }
  }
  return [...found].map(([name, { schemas: own, isRequired }]) => ({
    name,
    isMethod: false,
    detail: `${own.map(typeText).find(Boolean) ?? 'any'}${isRequired ? '' : ', optional'}`.slice(
      0,
      detailLengthMax,
    ),
    info: own.map(describedBy).filter(Boolean).join(' ').slice(0, infoLengthMax),
    shape: { schemas: own },
  }));
}

function typeText(schema: unknown): string {
  if (!isObject(schema)) return '';
  const { type, enum: choices, const: constant } = schema;
  if (constant !== undefined) return writeExactly(constant, detailLengthMax);
  if (Array.isArray(choices)) return choices.map((one) => writeExactly(one, detailLengthMax)).join(' | ');
  return Array.isArray(type) ? type.join(' | ') : typeof type === 'string' ? type : '';
}

/** Describes a value: its author's description, and its bounds. */
function describedBy(schema: unknown): string {
  if (!isObject(schema)) return '';
  const bounds = ['minimum', 'exclusiveMinimum', 'maximum', 'exclusiveMaximum', 'maxLength', 'pattern']
    .filter((key) => schema[key] !== undefined)
    .map((key) => `${key} ${writeExactly(schema[key], detailLengthMax)}`);
  const { title, description } = schema;
  const said = [title, description].filter((one) => typeof one === 'string');
  return [...said, bounds.join(', ')].filter(Boolean).join('. ');
}
