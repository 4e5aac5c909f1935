import { OperatorError } from '../../../core/errors.ts';

/** Figures of a run that assertions look up by name. */
export interface FigureSource {
  /** Undefined where there is no figure of that name. */
  figure(name: string): number | undefined;
  /** For the sentence that one is unknown. */
  names(): readonly string[];
}

/** A condition on a figure, like `datapoint.p99<50ms`. */
export interface Assertion {
  text: string;
  name: string;
  compare: keyof typeof comparisons;
  /** Milliseconds for times. */
  bound: number;
}

/** An assertion with what came of it. */
export interface CheckedAssertion {
  text: string;
  value: number;
  holds: boolean;
}

const comparisons = {
  '<': (value: number, bound: number) => value < bound,
  '<=': (value: number, bound: number) => value <= bound,
  '=': (value: number, bound: number) => value === bound,
  '>=': (value: number, bound: number) => value >= bound,
  '>': (value: number, bound: number) => value > bound,
};
const factors: Readonly<Record<string, number>> = { '': 1, us: 0.001, ms: 1, s: 1_000, '/s': 1 };
const pattern = /^([a-z][a-z0-9_.]{0,63})\s*(<=|>=|<|>|=)\s*(\d{1,12}(?:\.\d{1,6})?)(us|ms|s|\/s|)$/;

/** Reads `datapoint.p99<50ms, errors=0`. @throws OperatorError */
export function readAssertions(text: string): Assertion[] {
  const parts = text.split(',').map((part) => part.trim());
  return parts.filter((part) => part !== '').map(readAssertion);
}

function readAssertion(text: string): Assertion {
  const [, name = '', compare = '', number = '', unit = ''] = pattern.exec(text) ?? [];
  const factor = factors[unit];
  if (name === '' || factor === undefined) {
    throw new OperatorError(
      `The assertion ${text} cannot be read: give one like datapoint.p99<50ms or errors=0.`,
    );
  }
  return { text, name, compare: compare as Assertion['compare'], bound: Number(number) * factor };
}

/** Holds assertions against the figures. @throws OperatorError for one that there is no figure for. */
export function checkAssertions(assertions: readonly Assertion[], source: FigureSource): CheckedAssertion[] {
  return assertions.map(({ text, name, compare, bound }) => {
    const value = source.figure(name);
    if (value === undefined)
      throw new OperatorError(`There is no figure ${name}: there are ${source.names().join(', ')}.`);
    return { text, value, holds: comparisons[compare](value, bound) };
  });
}
