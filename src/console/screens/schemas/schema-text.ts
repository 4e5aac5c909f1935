import type { SchemaDocument } from '../../../contract/schema.ts';

export type SchemaKindName = SchemaDocument['kind'];

/** Which schema of which fleet. */
export interface SchemaName {
  fleetId: string;
  kind: SchemaKindName;
  name: string;
}

/** A schema as it is written, and a body that it is tried on. */
export interface WrittenSchema {
  text: string;
}

export interface SampleText {
  sample: string;
}

/** A new schema before anything is typed. */
export const newSchema: WrittenSchema = {
  text: `{
  "type": "object",
  "required": [],
  "properties": {
  }
}
`,
};

export const noSample: SampleText = { sample: '{\n}' };

/** Key of the draft of a schema; with `#sample`, of the body that it is tried on. */
export function schemaDraftKey(fleetId: string, kind: string, name: string): string {
  return `${fleetId}/schema/${kind}/${name}`;
}

/** Says why it cannot be stored, as far as this page knows; undefined if it can. */
export function schemaProblem({ text }: WrittenSchema): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? undefined : 'A schema is a JSON object.';
  } catch {
    return 'It is no JSON yet.';
  }
}
