// Makes a file of JavaScript of each source that Node runs, and one of each library that is loaded at every start: they
// have hundreds, which took a third of the CPU of a start to find and read.
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { build } from 'esbuild';

/**
 * Of JavaScript alone, and what we use of them asks for no file of theirs by its path. None that is a module through
 * which requests run: the bundler makes variables of a module's constants.
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
const options = { platform: 'node', target: 'node20.19', logLevel: 'warning' };
const fileOf = (library) => `libraries/${library.replaceAll('/', '-').replace(/^@|\.js$/g, '')}.js`;

export async function buildServer(folder) {
  // Not bundled: the bundler would make variables of a module's constants, which the hot path may pay for.
  const { outputFiles } = await build({
    ...options,
    entryPoints: sources(),
    outbase: 'src',
    outdir: folder,
    sourcemap: true,
    sourcesContent: false,
    write: false,
  });
  for (const { path, text } of outputFiles) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, path.endsWith('.js') ? pointed(text, relative(folder, dirname(path))) : text);
  }
  await buildLibraries(folder);
}

/** The console is for browsers. */
function sources() {
  return readdirSync('src', { recursive: true })
    .filter((name) => name.endsWith('.ts') && !name.startsWith('console/') && !name.endsWith('.d.ts'))
    .map((name) => join('src', name));
}

/** Has a file of that folder import what is built: the others beside it, and our copies of libraries. */
function pointed(code, folder) {
  return code.replace(/(\bfrom |^import |\bimport\()"([^"]+)"/gm, (all, before, name) => {
    if (name.startsWith('.')) return `${before}"${name.replace(/\.ts$/, '.js')}"`;
    return libraries.includes(name) ? `${before}"./${relative(folder, fileOf(name))}"` : all;
  });
}

/** Each exports what Node finds in it: a library in CommonJS does not say so by itself. */
async function buildLibraries(folder) {
  mkdirSync(join(folder, 'libraries'));
  const files = libraries.map(async (library) => {
    const file = resolve(folder, fileOf(library));
    const names = Object.keys(await import(library)).filter((name) => name !== 'module.exports');
    writeFileSync(file, `export { ${names.join(', ')} } from '${library}';\n`);
    return file;
  });
  await build({
    ...options,
    entryPoints: await Promise.all(files),
    outdir: resolve(folder, 'libraries'),
    // What it names files by in comments: else each build would differ.
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
