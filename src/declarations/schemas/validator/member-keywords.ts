import { isJsonObject, memberTest, onObjects } from './assertions.ts';
import { type Check, type Evaluated, passes, type Validation } from './validation.ts';

export function properties(named: readonly [name: string, check: Check, operations: number][]): Check {
  const members = named.map(([name, check]) => ({ name, check, isIn: memberTest(name) }));
  return (value, validation, evaluated) => {
    if (!isJsonObject(value)) return true;
    let isValid = true;
    for (const { name, check, isIn } of members) {
      if (!isIn(value)) continue;
      evaluated?.names.add(name);
      if (validation.within(name, check, value[name])) continue;
      if (!validation.isExhaustive) return false;
      isValid = false;
    }
    return isValid;
  };
}

/** A pattern of names, and the check of members that it fits. */
export interface Fitting {
  fits: (name: string, validation: Validation) => boolean;
  check: Check;
  operations: number;
}

export function patternProperties(fitting: readonly Fitting[]): Check {
  return (value, validation, evaluated) => {
    if (!isJsonObject(value)) return true;
    let isValid = true;
    for (const name of validation.namesOf(value)) {
      for (const { fits, check, operations } of fitting) {
        if (!fits(name, validation)) continue;
        validation.spend(operations);
        evaluated?.names.add(name);
        if (validation.within(name, check, value[name])) continue;
        if (!validation.isExhaustive) return false;
        isValid = false;
      }
    }
    return isValid;
  };
}

/** Members that no keyword beside this one is about. `failure` says that there must be none. */
export function otherMembers(
  isOther: (name: string, validation: Validation, evaluated: Evaluated | undefined) => boolean,
  check: Check,
  operations: number,
  failure: string | undefined,
): Check {
  return (value, validation, evaluated) => {
    if (!isJsonObject(value)) return true;
    let isValid = true;
    for (const name of check === passes ? [] : validation.namesOf(value)) {
      validation.spend(operations);
      if (!isOther(name, validation, evaluated)) continue;
      const isAllowed =
        failure === undefined ? validation.within(name, check, value[name]) : validation.fail(() => failure);
      if (isAllowed) continue;
      if (!validation.isExhaustive) return false;
      isValid = false;
    }
    // The keywords beside it have looked at the others.
    if (evaluated !== undefined) evaluated.hasAllMembers = true;
    return isValid;
  };
}

export function propertyNames(check: Check, operations: number): Check {
  return onObjects((value, validation) => {
    let isValid = true;
    for (const name of validation.namesOf(value)) {
      validation.spend(operations);
      if (check(name, validation, undefined)) continue;
      isValid = validation.fail(() => 'property name must be valid');
      if (!validation.isExhaustive) break;
    }
    return isValid;
  });
}
