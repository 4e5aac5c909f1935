// Makes a file of JavaScript of each source that Node runs, and one of each library that is loaded at every start, and of
// each thread that there are several of: to find and read their hundreds of files took a third of the CPU of a start.
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { build } from 'esbuild';

/** Of JavaScript alone, and what we use of them asks for no file of theirs by its path. */
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
  're2js',
  'typebox',
  'uuidv7',
];
/** Where threads begin of which each server has several; they share nothing with other code, and find no file by its path. */
const threads = ['threads/worker.ts'];
const options = { bundle: true, platform: 'node', format: 'esm', target: 'node20.19', logLevel: 'warning' };
const fileOf = (library) => `libraries/${library.replaceAll('/', '-').replace(/^@|\.js$/g, '')}.js`;

/** Has all that a file imports stay where it is; or only libraries, for one that is at that place and takes in the rest. */
function importing(place) {
  return {
    name: 'importing',
    setup(bundle) {
      bundle.onResolve({ filter: /.*/ }, ({ path, importer, kind }) => {
        const isOurs = path.startsWith('.');
        if (kind === 'entry-point' || (isOurs && place !== undefined)) return;
        if (isOurs) return { path: path.replace(/\.ts$/, '.js'), external: true };
        if (!libraries.includes(path)) return { path, external: true };
        const file = relative(place ?? dirname(importer), join(process.cwd(), 'src', fileOf(path)));
        return { path: `./${file}`, external: true };
      });
    },
  };
}

export async function buildServer(folder) {
  const to = { ...options, sourcemap: true, sourcesContent: false };
  await build({ ...to, entryPoints: sources(), outbase: 'src', outdir: folder, plugins: [importing()] });
  for (const thread of threads) {
    const place = dirname(thread);
    await build({
      ...to,
      entryPoints: [join('src', thread)],
      outdir: join(folder, place),
      // What it imports when it is needed stays apart, in the same folder.
      splitting: true,
      plugins: [importing(resolve('src', place))],
    });
  }
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
    // Which pg would use if it were there.
    external: ['pg-native'],
    // Libraries in CommonJS ask for modules of Node.
    banner: {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    },
  });
}
