import { readFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { OperatorError } from '../core/errors.ts';

/** Reads a file; `-` is standard input. @throws OperatorError */
export async function readInput(file: string): Promise<Buffer> {
  try {
    return file === '-' ? await buffer(process.stdin) : await readFile(file);
  } catch (error) {
    throw new OperatorError(`${file} cannot be read: ${(error as Error).message}.`);
  }
}

/** @throws OperatorError */
export async function readJson(file: string): Promise<unknown> {
  const bytes = await readInput(file);
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch (error) {
    throw new OperatorError(`${file} is not JSON: ${(error as Error).message}.`);
  }
}
