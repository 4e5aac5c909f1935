// Compiles src/ beside dist/ and then puts each file that has changed in its place by a rename, so that a server
// that runs from dist/ finds each of its files whole at any moment: it loads some when a thread starts.
import { spawnSync } from 'node:child_process';
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
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { build } from 'esbuild';
import { buildConsole } from './build-console.js';
import { buildDevice } from './build-device.js';
import { compressFiles } from './compress.js';

process.chdir(new URL('..', import.meta.url).pathname);
const target = 'dist';
// As deep as dist/, since source maps name their sources by a relative path.
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

function bundleInPlace(file) {
  return build({
    entryPoints: [file],
    outfile: file,
    allowOverwrite: true,
    bundle: true,
    platform: 'node',
    format: 'esm',
    logLevel: 'warning',
  });
}

function put(file) {
  mkdirSync(dirname(join(target, file)), { recursive: true });
  renameSync(join(compiled, file), join(target, file));
}

try {
  const compiler = createRequire(import.meta.url).resolve('typescript/lib/tsc.js');
  const { status } = spawnSync(process.execPath, [compiler, '--outDir', compiled], { stdio: 'inherit' });
  process.exitCode = status ?? 1;
  if (status === 0) {
    chmodSync(join(compiled, 'main.js'), 0o755);
    // What an author of actions imports: types alone, which are the source as it is.
    copyFileSync('src/features/actions/pool/api.ts', join(compiled, 'features/actions/pool/api.d.ts'));
    // The library in it has hundreds of files, which each start would look for one by one.
    await bundleInPlace(join(compiled, 'contract/type-builder.js'));
    await buildDevice(compiler, compiled);
    await buildConsole(join(compiled, 'console'));
    compressFiles(join(compiled, 'console'));
    const files = filesIn(compiled);
    for (const file of files) if (!isSame(file)) put(file);
    for (const file of filesIn(target)) if (!files.includes(file)) rmSync(join(target, file));
  }
} finally {
  rmSync(compiled, { recursive: true, force: true });
}
