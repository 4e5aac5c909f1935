// Makes a file of JavaScript of each source that Node runs, and one of each library that is loaded at every start:
// they have hundreds, which took a third of the CPU of a start to find and read.
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { build } from 'esbuild';

/** Of JavaScript alone, which ask for no file of theirs by its path. */
const libraries = [
  'ajv',
  'ajv/dist/2020.js',
  'cli-progress',
  'commander',
  'csv-parse/sync',
  'fast-json-stringify',
  'fastify',
  '@fastify/swagger',
  'prom-client',
  're2js',
  'typebox',
  'uuidv7',
];
const options = { bundle: true, platform: 'node', format: 'esm', target: 'node20.19', logLevel: 'warning' };
const fileOf = (library) => `libraries/${library.replaceAll('/', '-').replace(/^@|\.js$/g, '')}.js`;

const asFiles = {
  name: 'as files',
  setup(bundle) {
    bundle.onResolve({ filter: /.*/ }, ({ path, importer, kind }) => {
      if (kind === 'entry-point') return;
      if (path.startsWith('.')) return { path: path.replace(/\.ts$/, '.js'), external: true };
      if (!libraries.includes(path)) return { path, external: true };
      return { path: relative(dirname(importer), join(process.cwd(), 'src', fileOf(path))), external: true };
    });
  },
};

export async function buildServer(folder) {
  await build({
    ...options,
    entryPoints: sources(),
    outbase: 'src',
    outdir: folder,
    sourcemap: true,
    sourcesContent: false,
    plugins: [asFiles],
  });
  await buildLibraries(folder);
}

/** The console is for browsers. */
function sources() {
  return readdirSync('src', { recursive: true })
    .filter((name) => name.endsWith('.ts') && !name.startsWith('console/') && !name.endsWith('.d.ts'))
    .map((name) => join('src', name));
}

/** Each exports what Node finds in it: a library in CommonJS does not say so by itself. */
async function buildLibraries(folder) {
  mkdirSync(join(folder, 'libraries'));
  const files = libraries.map(async (library) => {
    const file = join(folder, fileOf(library));
    const names = Object.keys(await import(library)).filter((name) => name !== 'module.exports');
    writeFileSync(file, `export { ${names.join(', ')} } from '${library}';\n`);
    return file;
  });
  await build({
    ...options,
    entryPoints: await Promise.all(files),
    outdir: join(folder, 'libraries'),
    allowOverwrite: true,
    splitting: true,
    external: ['pino'],
    // Libraries in CommonJS ask for modules of Node.
    banner: {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    },
  });
}
