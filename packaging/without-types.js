import { transform } from 'esbuild';

/** The oldest Node that runs what is built. */
export const target = 'node20.19';

/** The JavaScript of a TypeScript source, with nothing else changed: in dist/ as in what benchmarks load. */
export async function withoutTypes(source, file) {
  const { code } = await transform(source, { loader: 'ts', target, sourcefile: file, logLevel: 'warning' });
  return code;
}
