// Builds src/ beside dist/, without a look at its types, and then puts each file that has changed in its place by a
// rename, so that a server that runs from dist/ finds each of its files whole at any moment: it loads some when a thread starts.
// Does nothing where dist/ is what these sources were built into: commands of tests and benchmarks all build first.
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { compressFiles } from './compress.js';

process.chdir(new URL('..', import.meta.url).pathname);
const target = 'dist';
const compiled = `dist.${process.pid}`;
const digestFile = join(target, 'build.sha256');

function filesIn(folder) {
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
}

/** Digest of all that a build reads and all that it has written. */
function digest() {
  const hash = createHash('sha256');
  const read = ['src', 'packaging'].flatMap((folder) => filesIn(folder).map((file) => join(folder, file)));
  const written = filesIn(target).map((file) => join(target, file));
  for (const file of ['package-lock.json', 'tsconfig.json', ...read.sort(), ...written.sort()]) {
    if (file !== digestFile) hash.update(`${file}\n`).update(readFileSync(file));
  }
  return hash.digest('hex');
}

function isBuilt() {
  return existsSync(digestFile) && readFileSync(digestFile, 'utf8') === digest();
}

function isSame(file) {
  const [before, after] = [join(target, file), join(compiled, file)];
  return existsSync(before) && readFileSync(before).equals(readFileSync(after));
}

function put(file) {
  mkdirSync(dirname(join(target, file)), { recursive: true });
  renameSync(join(compiled, file), join(target, file));
}

/** Imports them here: where dist/ is built, `npm ci --omit=dev` is enough, which leaves out what they need. */
async function loadBuilders() {
  try {
    const { buildConsole } = await import('./build-console.js');
    const { buildDevice } = await import('./build-device.js');
    const { buildServer } = await import('./build-server.js');
    return { buildConsole, buildDevice, buildServer };
  } catch (error) {
    if (!error.message.startsWith('Cannot find package')) throw error;
    console.error(
      'dist/ is not built from these sources, and what builds it is not installed: run npm ci --include=dev and then npm prune --omit=dev, or install a package, which has dist/ in it.',
    );
    process.exit(1);
  }
}

async function buildAll() {
  const { buildConsole, buildDevice, buildServer } = await loadBuilders();
  const console = join(compiled, 'console');
  await Promise.all([buildServer(compiled), buildDevice(compiled), buildConsole(console)]);
  chmodSync(join(compiled, 'main.js'), 0o755);
  // Types that an author of actions imports: types alone, which are the source as it is.
  copyFileSync('src/features/actions/pool/api.ts', join(compiled, 'features/actions/pool/api.d.ts'));
  compressFiles(console);
  const files = filesIn(compiled);
  for (const file of files) if (!isSame(file)) put(file);
  for (const file of filesIn(target)) if (!files.includes(file)) rmSync(join(target, file));
  writeFileSync(digestFile, digest());
}

try {
  if (!isBuilt()) await buildAll();
} finally {
  rmSync(compiled, { recursive: true, force: true });
}
