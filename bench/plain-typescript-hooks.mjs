import { readFile } from 'node:fs/promises';
import { transform } from 'esbuild';

/** Node calls it for each module, in a thread of its own. */
export async function load(url, context, nextLoad) {
  if (!url.endsWith('.ts')) return nextLoad(url, context);
  const { code } = await transform(await readFile(new URL(url), 'utf8'), {
    loader: 'ts',
    target: 'node20.19',
  });
  return { format: 'module', source: code, shortCircuit: true };
}
