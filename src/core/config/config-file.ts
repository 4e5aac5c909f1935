import { readFileSync } from 'node:fs';
import { OperatorError } from '../errors.ts';

/** What the text says as JSON, or the text: whatever it is, it is checked later. */
export function jsonOrText(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

/** The number that the text says, or the text. */
export function numberOrText(value: string): unknown {
  const number = Number(value);
  return value.trim() === '' || !Number.isFinite(number) ? value : number;
}

/** @throws OperatorError where it is no JSON object. */
export function readConfigFile(path: string): Record<string, unknown> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new OperatorError(`The configuration file ${path} cannot be read: ${(error as Error).message}`);
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw new OperatorError(`The configuration file ${path} must hold one JSON object.`);
  }
  return parsed as Record<string, unknown>;
}
