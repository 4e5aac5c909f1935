import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Noise } from '../../../../src/device/simulator/payload/noise.ts';
import { PayloadMaker } from '../../../../src/device/simulator/payload/payload-maker.ts';
import type { SchemaObject } from '../../../../src/device/simulator/payload/schema-root.ts';
import { builtInSchemas } from '../../../../src/device/simulator/scenario/built-in-profiles.ts';

const bound = fc.integer({ min: -1_000, max: 1_000 });
const number = fc
  .tuple(fc.constantFrom('number', 'integer'), bound, fc.integer({ min: 2, max: 500 }), fc.boolean())
  .map(([type, least, width, isOpen]) => ({
    type,
    ...(isOpen
      ? { exclusiveMinimum: least, exclusiveMaximum: least + width }
      : { minimum: least, maximum: least + width }),
  }));
const multiple = fc
  .tuple(fc.constantFrom(0.5, 0.25, 0.1, 0.01, 3, 7), bound)
  .map(([multipleOf, minimum]) => ({ type: 'number', multipleOf, minimum, maximum: minimum + 50 }));
const text = fc
  .tuple(fc.nat({ max: 20 }), fc.nat({ max: 20 }))
  .map(([minLength, more]) => ({ type: 'string', minLength, maxLength: minLength + more }));
/** Ajv, which judges here, calls these members of the values that it compares. */
const callable = /"(toString|valueOf)":/;
const json = fc.jsonValue().filter((value) => !callable.test(JSON.stringify(value)));
const leaf: fc.Arbitrary<SchemaObject> = fc.oneof(
  number,
  multiple,
  text,
  fc.constant({ type: 'boolean' }),
  fc.constant({}),
  fc.constant({ type: ['integer', 'null'], minimum: 3 }),
  fc.constant({ $ref: '#/$defs/level' }),
  fc.array(json, { minLength: 1, maxLength: 4 }).map((values) => ({ enum: values })),
  json.map((value) => ({ const: value })),
);
const { node } = fc.letrec<{ node: SchemaObject; object: SchemaObject; list: SchemaObject }>((tie) => ({
  node: fc.oneof({ maxDepth: 3, withCrossShrink: true }, leaf, tie('object'), tie('list')),
  list: fc
    .tuple(tie('node'), fc.nat({ max: 3 }), fc.nat({ max: 3 }))
    .map(([items, minItems, more]) => ({ type: 'array', items, minItems, maxItems: minItems + more })),
  object: fc
    .tuple(fc.dictionary(fc.stringMatching(/^[a-z]{1,6}$/), tie('node'), { maxKeys: 5 }), fc.nat())
    .map(([properties, chosen]) => ({
      type: 'object',
      properties,
      required: Object.keys(properties).filter((_, index) => ((chosen >> index) & 1) === 1),
      additionalProperties: false,
    })),
}));
const schemas = fc
  .dictionary(fc.stringMatching(/^[a-z]{1,6}$/), node, { minKeys: 1, maxKeys: 5 })
  .map((properties) => ({
    type: 'object',
    properties,
    additionalProperties: false,
    $defs: { level: { type: 'integer', minimum: 1, maximum: 5 } },
  }));

const make = (schema: SchemaObject, sample = 1, device = 3, seed = 7): Record<string, unknown> =>
  JSON.parse(new PayloadMaker('any', schema).make(new Noise(seed, device, sample)));

describe('payloads made from a schema', () => {
  it('match it, whatever it is', () => {
    const ajv = new Ajv2020({ strict: false });
    fc.assert(
      fc.property(schemas, fc.nat(), fc.nat(), (schema, seed, sample) => {
        const payload = make(schema, sample, 3, seed);
        const validate = ajv.compile(schema);
        expect(validate(payload), JSON.stringify([schema, payload, validate.errors])).toBe(true);
        // D10: a datapoint has at least one member.
        expect(Object.keys(payload).length).toBeGreaterThan(0);
      }),
    );
  });

  it('match the schemas that come along', () => {
    const ajv = new Ajv2020();
    for (const schema of Object.values(builtInSchemas).flatMap((kind) => Object.values(kind))) {
      const validate = ajv.compile(schema);
      for (let sample = 0; sample < 200; sample += 1) expect(validate(make(schema, sample))).toBe(true);
    }
  });

  it('are the same for the same seed, device and sample, and others for others', () => {
    const climate = builtInSchemas.datapoint.climate ?? {};
    expect(make(climate, 5, 9)).toEqual(make(climate, 5, 9));
    const devices = Array.from({ length: 50 }, (_, device) => JSON.stringify(make(climate, 5, device)));
    expect(new Set(devices).size).toBeGreaterThan(45);
    expect(make(climate, 5, 9, 1)).not.toEqual(make(climate, 5, 9, 2));
  });

  it('have numbers that wander by small steps over their whole range', () => {
    const schema = {
      type: 'object',
      properties: { n: { type: 'number', minimum: 0, maximum: 100 } },
      required: ['n'],
    };
    const values = Array.from({ length: 2_000 }, (_, sample) => make(schema, sample).n as number);
    const steps = values.slice(1).map((value, index) => Math.abs(value - (values[index] ?? 0)));
    expect(Math.max(...steps)).toBeLessThan(15);
    expect(Math.min(...values)).toBeLessThan(10);
    expect(Math.max(...values)).toBeGreaterThan(90);
  });

  it('cannot be made of everything: then it says of what, and what helps', () => {
    const pattern = { type: 'object', properties: { serial: { type: 'string', pattern: '^A[0-9]+$' } } };
    expect(() => make(pattern)).toThrow(
      'No payload can be made for the schema any: it has "pattern" at /serial. Give "examples" there.',
    );
    const helped = { properties: { serial: { ...pattern.properties.serial, examples: ['A1'] } } };
    expect(make({ type: 'object', required: ['serial'], ...helped })).toEqual({ serial: 'A1' });
    const endless = { type: 'object', properties: { self: { $ref: '#' } }, required: ['self'] };
    expect(() => make(endless)).toThrow('nested too deep');
    const never = { type: 'object', properties: { n: { type: 'integer', minimum: 1.2, maximum: 1.8 } } };
    expect(() => make(never)).toThrow('leaves no number between its bounds at /n');
  });
});
