// Bundles src/console for browsers. The names of its files say what is in them, so that they may be cached for ever;
// index.html alone is asked for again.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { build } from 'esbuild';

/** What authors of actions import, as the text that the editor completes from. */
const actionApi = {
  name: 'action-api',
  setup(bundle) {
    bundle.onResolve({ filter: /^fleetpost:action-api$/ }, ({ path }) => ({ path, namespace: 'action-api' }));
    bundle.onLoad({ filter: /.*/, namespace: 'action-api' }, () => ({
      contents: readFileSync('src/features/actions/pool/api.ts', 'utf8'),
      loader: 'text',
    }));
  },
};

export async function buildConsole(folder) {
  const { metafile } = await build({
    entryPoints: ['src/console/main.tsx'],
    outdir: join(folder, 'assets'),
    entryNames: 'console-[hash]',
    chunkNames: '[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    minify: true,
    metafile: true,
    target: 'es2022',
    tsconfig: 'src/console/tsconfig.json',
    legalComments: 'none',
    plugins: [actionApi],
    logLevel: 'warning',
  });
  const [[script, { cssBundle, imports }]] = Object.entries(metafile.outputs).filter(([, { entryPoint }]) =>
    entryPoint?.endsWith('main.tsx'),
  );
  const urlOf = (path) => `/console/assets/${basename(path)}`;
  // What the entry shares with screens that are loaded later: asked for at once, not after the entry was read.
  const preloads = imports
    .filter(({ kind }) => kind === 'import-statement')
    .map(({ path }) => `<link rel="modulepreload" href="${urlOf(path)}">`);
  const page = readFileSync('src/console/index.html', 'utf8');
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    join(folder, 'index.html'),
    page
      .replace('@SCRIPT@', urlOf(script))
      .replace('@STYLE@', urlOf(cssBundle))
      .replace('<!-- @PRELOADS@ -->', preloads.join('\n    ')),
  );
}
