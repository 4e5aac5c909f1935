import type { Ajv2020, FuncKeywordDefinition } from 'ajv/dist/2020.js';
import type { SchemaValidateFunction } from 'ajv/dist/types/index.js';

/**
 * Numbers the values of one body; equal values get the same (JSON Schema Core 2020-12, 4.2.2). Each value is visited
 * once, however many lists contain it.
 */
class ValueNumbers {
  readonly #primitives = new Map<unknown, number>();
  /** Lists and objects, by the numbers of their parts. */
  readonly #composed = new Map<string, number>();
  readonly #known = new Map<object, number>();
  #last = 0;

  of(value: unknown): number {
    if (typeof value !== 'object' || value === null) return this.#numberOf(this.#primitives, value);
    const known = this.#known.get(value);
    if (known !== undefined) return known;
    const number = this.#numberOf(
      this.#composed,
      Array.isArray(value) ? this.#list(value) : this.#members(value),
    );
    this.#known.set(value, number);
    return number;
  }

  #list(values: readonly unknown[]): string {
    return `[${values.map((value) => this.of(value)).join()}`;
  }

  /** Independent of the members' order. */
  #members(value: object): string {
    const members = Object.entries(value).map(([name, member]) => `${this.of(name)}:${this.of(member)}`);
    return `{${members.sort().join()}`;
  }

  #numberOf<K>(numbers: Map<K, number>, key: K): number {
    const known = numbers.get(key);
    if (known !== undefined) return known;
    this.#last += 1;
    numbers.set(key, this.#last);
    return this.#last;
  }
}

/** Numbers for the bodies being checked. */
const numbersOf = new WeakMap<object, ValueNumbers>();

function numbersIn(body: object): ValueNumbers {
  const numbers = numbersOf.get(body) ?? new ValueNumbers();
  numbersOf.set(body, numbers);
  return numbers;
}

/** Replaces Ajv's `uniqueItems`, which compares all pairs: half a million comparisons for a thousand objects. */
const validate: SchemaValidateFunction = (
  isRequired: boolean,
  items: readonly unknown[],
  _parent,
  at,
): boolean => {
  if (!isRequired || items.length < 2) return true;
  const numbers = numbersIn(at?.rootData ?? items);
  const indexes = new Map<number, number>();
  for (const [index, item] of items.entries()) {
    const number = numbers.of(item);
    const before = indexes.get(number);
    if (before !== undefined) {
      validate.errors = [
        {
          keyword: 'uniqueItems',
          message: `must NOT have duplicate items (items ## ${before} and ${index} are identical)`,
          params: { i: index, j: before },
        },
      ];
      return false;
    }
    indexes.set(number, index);
  }
  return true;
};

const uniqueItems: FuncKeywordDefinition = {
  keyword: 'uniqueItems',
  type: 'array',
  schemaType: 'boolean',
  errors: true,
  validate,
};

export function numberUniqueItems(ajv: Ajv2020): void {
  ajv.removeKeyword(uniqueItems.keyword as string);
  ajv.addKeyword(uniqueItems);
}
