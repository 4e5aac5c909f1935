import { readFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { OperatorError } from '../core/errors.ts';

/** Reads a file; `-` is standard input. @throws OperatorError */
export async function readInput(file: string): Promise<Buffer> {
  try {
    return file === '-' ? await buffer(process.stdin) : await readFile(file);
  } catch (error) {
    const isForbidden = (error as NodeJS.ErrnoException).code === 'EACCES';
    const next = isForbidden ? ' It is not for this user: give it to standard input, as -.' : '';
    throw new OperatorError(`${file} cannot be read: ${(error as Error).message}.${next}`);
  }
}

/** @throws OperatorError */
export async function readJson(file: string): Promise<unknown> {
  const bytes = await readInput(file);
  return parseJson(bytes.toString('utf8'), file);
}

/** Help of the option that `readPayload` reads. */
export const payloadHelp =
  'a JSON object, @FILE, or - for standard input; delivered byte for byte; default: {}';

/**
 * Reads the text of a payload: JSON itself, `@FILE`, or `-` for standard input.
 * @throws OperatorError if it is not JSON.
 */
export async function readPayload(option: string): Promise<string> {
  const isFile = option === '-' || option.startsWith('@');
  const text = isFile ? (await readInput(option.replace(/^@/, ''))).toString('utf8').trim() : option;
  parseJson(text, isFile ? `--payload ${option}` : '--payload');
  return text;
}

function parseJson(text: string, source: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new OperatorError(`${source} is not JSON: ${(error as Error).message}.`);
  }
}
