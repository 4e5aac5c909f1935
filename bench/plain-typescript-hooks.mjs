import { readFile } from 'node:fs/promises';
import { withoutTypes } from '../packaging/without-types.js';

/** Node calls it for each module, in a thread of its own. */
export async function load(url, context, nextLoad) {
  if (!url.endsWith('.ts')) return nextLoad(url, context);
  const source = await withoutTypes(await readFile(new URL(url), 'utf8'), url);
  return { format: 'module', source, shortCircuit: true };
}
