// Bundles what goes to devices, each into one file that needs Node 18 and nothing else: the client, with its types,
// and the agent. Their names end in .mjs: Node 18 takes a .js without a package.json for CommonJS.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { build } from 'esbuild';

export async function buildDevice(folder) {
  const bundle = (entry, file) =>
    build({
      entryPoints: [entry],
      outfile: join(folder, file),
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node18',
      legalComments: 'none',
      logLevel: 'warning',
    });
  await bundle('src/device/client/index.ts', 'device.mjs');
  await bundle('src/device/agent/bundle.ts', 'agent.mjs');
  const compiler = createRequire(import.meta.url).resolve('typescript/lib/tsc.js');
  const types = ['--project', 'src/device/client/tsconfig.json', '--outDir', folder];
  const [status] = await once(spawn(process.execPath, [compiler, ...types], { stdio: 'inherit' }), 'exit');
  if (status !== 0) throw new Error('The types of the client could not be built.');
}
