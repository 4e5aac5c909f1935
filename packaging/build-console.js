// Bundles src/console for browsers. The names of its files say what is in them, so that they may be cached for ever;
// index.html alone is asked for again.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { build } from 'esbuild';

/** Files that the console has as texts: what authors of actions import, and the first program of a device. */
const texts = {
  'fleetpost:action-api': 'src/features/actions/pool/api.ts',
  'fleetpost:pump.py': 'clients/quickstart/pump.py',
  'fleetpost:pump.mjs': 'clients/quickstart/pump.mjs',
};
const asTexts = {
  name: 'texts',
  setup(bundle) {
    bundle.onResolve({ filter: /^fleetpost:/ }, ({ path }) => ({ path, namespace: 'texts' }));
    bundle.onLoad({ filter: /.*/, namespace: 'texts' }, ({ path }) => ({
      contents: readFileSync(texts[path], 'utf8'),
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
    plugins: [asTexts],
    logLevel: 'warning',
  });
  const [[script, { cssBundle, imports }]] = Object.entries(metafile.outputs).filter(([, { entryPoint }]) =>
    entryPoint?.endsWith('main.tsx'),
  );
  const urlOf = (path) => `/console/assets/${basename(path)}`;
  // Preloads the modules that the entry shares with screens loaded later: asked for at once, not after the entry was
  // read.
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
