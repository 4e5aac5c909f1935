import { type Maker, refused, type SchemaObject, type SchemaRoot } from './schema-root.ts';

/** Width of a range with one end, or none. */
const usualRange = 100;
/** Multiples that are looked at for a schema with `multipleOf`: beyond, the lowest ones are taken. */
const multiplesMax = 1_000;
/** Steps of a fraction's range, as of a sensor of 12 bits. */
const resolution = 4_096;

/** Makes numbers that wander within their bounds. @throws OperatorError where there is none within them. */
export function numberMaker(root: SchemaRoot, schema: SchemaObject, path: string, isInteger: boolean): Maker {
  const { multipleOf } = schema;
  const step = typeof multipleOf === 'number' ? multipleOf : isInteger ? 1 : undefined;
  const field = root.nextField();
  const [least, most] = boundsOf(schema);
  const isWithin = (value: number): boolean =>
    matches(schema, value) && (!isInteger || Number.isInteger(value));
  if (step !== undefined) {
    const first = Math.ceil(least / step);
    const last = Math.min(Math.floor(most / step), first + multiplesMax);
    const values: number[] = [];
    for (let times = first; times <= last; times += 1) {
      const value = times * step;
      if (isWithin(value) && Number.isInteger(value / step)) values.push(value);
    }
    if (values.length === 0) throw refused(root, path, 'leaves no number between its bounds');
    return (noise) => values[Math.round(noise.wander(field) * (values.length - 1))];
  }
  const middle = least + (most - least) / 2;
  if (!isWithin(middle)) throw refused(root, path, 'leaves no number between its bounds');
  return (noise) => {
    const part = Math.round(noise.wander(field) * resolution) / resolution;
    const value = Number((least + (most - least) * part).toPrecision(6));
    return isWithin(value) ? value : middle;
  };
}

/** Both ends, with what is usual for one that is open. */
function boundsOf({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }: SchemaObject): [number, number] {
  const least = Math.max(...[minimum, exclusiveMinimum].filter(isNumber), Number.NEGATIVE_INFINITY);
  const most = Math.min(...[maximum, exclusiveMaximum].filter(isNumber), Number.POSITIVE_INFINITY);
  if (Number.isFinite(least)) return [least, Number.isFinite(most) ? most : least + usualRange];
  return Number.isFinite(most) ? [most - usualRange, most] : [0, usualRange];
}

function matches(schema: SchemaObject, value: number): boolean {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema;
  return (
    (!isNumber(minimum) || value >= minimum) &&
    (!isNumber(maximum) || value <= maximum) &&
    (!isNumber(exclusiveMinimum) || value > exclusiveMinimum) &&
    (!isNumber(exclusiveMaximum) || value < exclusiveMaximum)
  );
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number';
}
