import { OperatorError } from '../../../core/errors.ts';
import type { Noise } from './noise.ts';
import type { Maker, SchemaObject } from './schema-root.ts';
import { maker } from './value-maker.ts';

/** Makes payloads that match a schema by their construction: nothing is tried and thrown away. */
export class PayloadMaker {
  readonly #make: Maker;

  /** @throws OperatorError if the schema has something of which no value can be made. */
  constructor(name: string, schema: SchemaObject) {
    let fields = 0;
    const root = { schema, name, nextField: () => fields++ };
    const isEmpty = Object.keys(objectOf(schema.properties)).length === 0 && schema.$ref === undefined;
    if (isEmpty && schema.additionalProperties === false)
      throw new OperatorError(`The schema ${name} has no properties, and allows no others.`);
    const open: SchemaObject = { type: 'object', properties: { value: {} }, required: ['value'] };
    // A datapoint has at least one member (D10).
    this.#make = maker(root, isEmpty ? open : { minProperties: 1, ...schema }, '', 0);
  }

  make(noise: Noise): string {
    return JSON.stringify(this.#make(noise));
  }
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
