import { OperatorError } from '../../../core/errors.ts';
import type { Noise } from './noise.ts';

/** A JSON Schema as an object, its members unchecked: the server has compiled it, or refuses it. */
export type SchemaObject = Readonly<Record<string, unknown>>;
/** Makes one value. */
export type Maker = (noise: Noise) => unknown;

/** State that the makers of one whole schema share. */
export interface SchemaRoot {
  schema: SchemaObject;
  name: string;
  /** Numbers the fields that wander. */
  nextField(): number;
}

/** Says which part of a schema nothing can be made of, and what helps. */
export function refused({ name }: SchemaRoot, path: string, reason: string): OperatorError {
  const place = path === '' ? '' : ` at ${path}`;
  return new OperatorError(
    `No payload can be made for the schema ${name}: it ${reason}${place}. Give "examples" there.`,
  );
}
