import type { Option } from 'commander';
import { type RefusedError, sentenceOf } from './admin-client.ts';

/** Names of fields that have another name as an option. */
const renamed: Readonly<Record<string, string>> = { from: 'since', to: 'until' };

/** A server's refusal in the words of a command line: options instead of JSON pointers. */
export function refusalText({ summary, fields }: RefusedError, options: readonly Option[]): string {
  const names = fields.map(({ path }) => optionFor(path, options));
  if (fields.length > 0 && names.every((name) => name !== undefined)) {
    return `${fields.map(({ msg }, index) => `${names[index]} ${msg}`).join('; ')}.`;
  }
  return sentenceOf(summary, fields, ({ path }) => optionFor(path, options) ?? (path === '' ? 'it' : path));
}

/** Finds the option that sets the field at a JSON pointer: `--tag` for `/tags/0`, `--expires` for `/expires_at`. */
function optionFor(pointer: string, options: readonly Option[]): string | undefined {
  const field = pointer.split('/').findLast((segment) => /^[a-z_]+$/.test(segment)) ?? '';
  const name = (renamed[field] ?? field).replaceAll('_', '-');
  const singular = name.replace(/s$/, '');
  const short = singular.replace(/-(id|at|max|second|millisecond)$/, '');
  const known = new Set(options.map(({ long }) => long));
  const candidates = [
    name,
    singular,
    short,
    name.replace(/-max$/, ''),
    ...(short === singular ? [] : ['id']),
  ];
  return candidates.map((one) => `--${one}`).find((flag) => known.has(flag));
}
