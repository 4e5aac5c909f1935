import { once } from 'node:events';
import type { Command } from 'commander';
import { loadConfig } from '../core/config.ts';
import { demoCommands } from './demo.ts';
import type { RunningServer } from './serve.ts';

interface ServeFlags {
  config?: string;
  data?: string;
  listen?: string;
  admin?: string;
  shards?: string;
  json?: boolean;
}

/** The flags that `serve` and `config` share; each stands for the key of its name. */
export function withConfigFlags(command: Command): Command {
  return command
    .option('--config <file>', 'configuration file, JSON')
    .option('--data <dir>', 'data folder')
    .option('--listen <host:port>', 'address of the device API')
    .option('--admin <host:port>', 'address of the admin API')
    .option('--shards <n>', 'worker threads and shards');
}

export function effectiveConfig({ config, json: _, ...flags }: ServeFlags): ReturnType<typeof loadConfig> {
  return loadConfig(config, process.env, flags);
}

export function addServeCommand(program: Command): void {
  withConfigFlags(program.command('serve').description('run the server until SIGTERM or SIGINT'))
    .option('--json', 'print one JSON document when ready')
    .action(async (flags: ServeFlags) => {
      // Before anything is started, so that no signal ends the process on the way; a second one does nothing.
      const stopping = new AbortController();
      const stop = (): void => stopping.abort();
      process.on('SIGTERM', stop).on('SIGINT', stop);
      const server = await startUnless(stopping.signal, flags);
      if (server === undefined) return;
      console.log(flags.json ? report(server) : greeting(server));
      if (!stopping.signal.aborted) await once(stopping.signal, 'abort');
      await server.stop();
    });
}

/** Undefined where the signal came in time to stop a move to another shard count. */
async function startUnless(signal: AbortSignal, flags: ServeFlags): Promise<RunningServer | undefined> {
  // Loaded here, so that the other commands need not wait for the server's libraries.
  const { startServer } = await import('./serve.ts');
  try {
    return await startServer(effectiveConfig(flags), signal);
  } catch (error) {
    if (error !== signal.reason) throw error;
    console.error('Stopped while the data folder was moving to another shard count: the next start goes on.');
    return undefined;
  }
}

function report(server: RunningServer): string {
  const { url, adminUrl, folder, certFile, demo } = server;
  return JSON.stringify({
    url,
    admin_url: adminUrl,
    data: folder.path,
    shards: folder.shards,
    cert_file: certFile,
    demo: demo ?? null,
  });
}

function greeting(server: RunningServer): string {
  const { url, adminUrl, folder, certFile, fleets, demo } = server;
  const lines = [
    `Fleetpost answers devices on ${url} and operators on ${adminUrl}.`,
    demo === undefined
      ? `Found ${folder.path}: ${folder.shards} shards, ${fleets} ${fleets === 1 ? 'fleet' : 'fleets'}. Certificate: ${certFile}.`
      : `Made ${folder.path} with ${folder.shards} shards, and a demo device. Its secret is shown this once. Try:`,
  ];
  if (demo !== undefined) lines.push('', ...demoCommands(demo, url, certFile), '');
  return lines.join('\n');
}
