import type { Command } from 'commander';
import { type EffectiveConfig, loadConfig, parseHostPort } from '../core/config.ts';
import { demoCommands } from './demo.ts';
import type { ReadyMessage } from './parent.ts';
import type { RunningServer } from './serve.ts';

interface ServeFlags {
  config?: string;
  data?: string;
  listen?: string;
  admin?: string;
  shards?: string;
  json?: boolean;
  parent?: boolean;
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

export function effectiveConfig({ config, json: _, parent: __, ...flags }: ServeFlags): EffectiveConfig {
  return loadConfig(config, process.env, flags);
}

export function addServeCommand(program: Command): void {
  withConfigFlags(program.command('serve').description('run the server until SIGTERM or SIGINT'))
    .option('--json', 'print one JSON document when ready')
    .option('--no-parent', 'serve in this very process: nothing starts it again when it dies')
    .action(async (flags: ServeFlags) => {
      // Loaded here, so that the other commands need not wait for the server's libraries.
      const { startServer } = await import('./serve.ts');
      // Before anything is started, so that no signal ends the process on the way; a second one does nothing.
      // Without its parent the server must not go on unnoticed.
      const ended = new Promise<void>((resolve) => {
        process.on('SIGTERM', resolve).on('SIGINT', resolve).on('disconnect', resolve);
      });
      const load = (): EffectiveConfig => effectiveConfig(flags);
      const starting = Promise.resolve().then(() => startServer(load()));
      process.on('SIGHUP', () => {
        // A start that fails says so below.
        starting.then((server) => server.reload(load)).catch(() => {});
      });
      try {
        const server = await starting;
        announce(server, flags.json ? report(server) : greeting(server));
        await ended;
        await server.stop();
      } finally {
        // The channel to the parent would keep this process alive.
        if (process.connected) process.disconnect();
      }
    });
}

/** On stdout; or to the parent, which does so at the first start alone: later ones have a log line. */
function announce(server: RunningServer, text: string): void {
  if (process.send === undefined) {
    console.log(text);
    return;
  }
  const { config, url, adminUrl } = server;
  const restartFlags: string[] = [];
  // Devices and operators look for the server where it was.
  for (const [flag, address, taken] of [
    ['--listen', config.listen, url],
    ['--admin', config.admin, adminUrl],
  ] as const) {
    if (parseHostPort(address).port === 0) restartFlags.push(flag, taken.slice(taken.indexOf('//') + 2));
  }
  const ready: ReadyMessage = { greeting: text, restartFlags };
  process.send(ready);
}

function report(server: RunningServer): string {
  const { url, adminUrl, folder, certFile, demo } = server;
  return JSON.stringify({
    url,
    admin_url: adminUrl,
    data: folder.path,
    shards: folder.shards,
    pid: process.pid,
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
