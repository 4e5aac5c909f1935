// Builds src/ beside dist/, without a look at its types, and then puts each file that has changed in its place by a
// rename, so that a server that runs from dist/ finds each of its files whole at any moment: it loads some when a thread starts.
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { buildConsole } from './build-console.js';
import { buildDevice } from './build-device.js';
import { buildServer } from './build-server.js';
import { compressFiles } from './compress.js';

process.chdir(new URL('..', import.meta.url).pathname);
const target = 'dist';
const compiled = `dist.${process.pid}`;

function filesIn(folder) {
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
}

function isSame(file) {
  const [before, after] = [join(target, file), join(compiled, file)];
  return existsSync(before) && readFileSync(before).equals(readFileSync(after));
}

function put(file) {
  mkdirSync(dirname(join(target, file)), { recursive: true });
  renameSync(join(compiled, file), join(target, file));
}

try {
  const console = join(compiled, 'console');
  await Promise.all([buildServer(compiled), buildDevice(compiled), buildConsole(console)]);
  chmodSync(join(compiled, 'main.js'), 0o755);
  // What an author of actions imports: types alone, which are the source as it is.
  copyFileSync('src/features/actions/pool/api.ts', join(compiled, 'features/actions/pool/api.d.ts'));
  compressFiles(console);
  const files = filesIn(compiled);
  for (const file of files) if (!isSame(file)) put(file);
  for (const file of filesIn(target)) if (!files.includes(file)) rmSync(join(target, file));
} finally {
  rmSync(compiled, { recursive: true, force: true });
}
