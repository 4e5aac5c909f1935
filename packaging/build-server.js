// Bundles what Node runs: the sources into a file for each part that is loaded at once, and each library that every
// start loads into a file of its own. To find and read some 1,600 files took half of the CPU of a start.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { build } from 'esbuild';
import { rollup } from 'rollup';
import { target, withoutTypes } from './without-types.js';

/** Files that are started as a process or a thread. */
const entries = [
  'main',
  'declarations/schema-checks/schema-check-thread',
  'device/simulator/devices/device-process',
  'features/actions/pool/task',
  'features/actions/compiler/compiler-process',
  'features/backups/backup-process',
  'maintenance/reshard-folder/reshard-worker',
  'threads/acceptor-thread',
  'threads/worker',
];

/**
 * Libraries of JavaScript alone, of which the parts we use ask for no file of theirs by its path. None that is a module
 * through which requests run: their bundler makes variables of a module's constants.
 */
const libraries = [
  'ajv',
  'ajv/dist/2020.js',
  'cli-progress',
  'commander',
  'csv-parse/sync',
  'fast-json-stringify',
  'fastify',
  '@fastify/swagger',
  '@peculiar/asn1-schema',
  '@peculiar/asn1-x509',
  '@peculiar/x509',
  'pg',
  'pino',
  'prom-client',
  'typebox',
];
const fileOf = (library) => `libraries/${library.replaceAll('/', '-').replace(/^@|\.js$/g, '')}.js`;
const pathTo = (file, from) => relative(dirname(from), file).replace(/^(?!\.)/, './');

export async function buildServer(folder) {
  await Promise.all([buildSources(folder), buildLibraries(folder)]);
}

async function buildSources(folder) {
  // By Rollup, which names a chunk for what is in it: a server that runs finds it after a build, too. esbuild names chunks
  // by digests, of which two changed files of src/core change half. It also makes variables of a module's constants:
  // a heartbeat costs 1.02 times as much (106 interleaved pairs, 95 %: 1.00 to 1.04).
  const bundle = await rollup({
    input: Object.fromEntries(entries.map((entry) => [entry, resolve('src', `${entry}.ts`)])),
    external: (name) => !/^[./]/.test(name),
    treeshake: false,
    onwarn: ({ message }) => {
      throw new Error(message);
    },
    plugins: [
      { name: 'sources', resolveId: found, transform: withoutTypes },
      { name: 'paths', resolveImportMeta: pointed, renderChunk: withLibraries },
    ],
  });
  await bundle.write({
    dir: folder,
    entryFileNames: '[name].js',
    chunkFileNames: 'chunks/[name].js',
    // Exports keep their names: by minified ones a server that runs would find something else in a chunk that was built
    // anew.
    minifyInternalExports: false,
    hoistTransitiveImports: false,
  });
}

/** Resolves a relative import to the path that it names: Rollup would ask the disk for each. */
const found = (name, from) => (name.startsWith('.') ? resolve(dirname(from), name) : null);

/** Has a module find the files beside it from where its chunk is. */
function pointed(property, { chunkId, moduleId }) {
  const own = relative('src', moduleId).replace(/\.ts$/, '.js');
  return property === 'url' ? `new URL('${pathTo(own, chunkId)}', import.meta.url).href` : null;
}

/** Has a chunk import our copies of libraries. */
function withLibraries(code, { fileName }) {
  return code.replace(/(\bfrom |^import |\bimport\()'([^']+)'/gm, (all, before, name) =>
    libraries.includes(name) ? `${before}'${pathTo(fileOf(name), fileName)}'` : all,
  );
}

/** Each exports what Node finds in it: a library in CommonJS does not say so by itself. */
async function buildLibraries(folder) {
  mkdirSync(join(folder, 'libraries'), { recursive: true });
  const files = libraries.map(async (library) => {
    const file = resolve(folder, fileOf(library));
    const names = Object.keys(await import(library)).filter((name) => name !== 'module.exports');
    writeFileSync(file, `export { ${names.join(', ')} } from '${library}';\n`);
    return file;
  });
  await build({
    platform: 'node',
    target,
    logLevel: 'warning',
    entryPoints: await Promise.all(files),
    outdir: resolve(folder, 'libraries'),
    // Base of the file names that it writes in comments: else each build would differ.
    absWorkingDir: resolve(folder),
    allowOverwrite: true,
    bundle: true,
    format: 'esm',
    splitting: true,
    // Which pg would use if it were there.
    external: ['pg-native'],
    // Libraries in CommonJS ask for modules of Node.
    banner: {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    },
  });
}
