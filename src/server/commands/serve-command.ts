import { once } from 'node:events';
import type { Command } from 'commander';
import { bracketed, parseHostPort } from '../../core/address.ts';
import { configVariable } from '../../core/config/client-variables.ts';
import { type EffectiveConfig, loadConfig } from '../configuration/config.ts';
import { demoCommands } from '../demo.ts';
import type { RunningServer } from '../serve.ts';
import type { ReadyMessage } from '../supervisor.ts';
import { notifyReady } from '../systemd.ts';
import { counted } from './counted.ts';

interface ServeFlags {
  config?: string;
  data?: string;
  listen?: string;
  admin?: string;
  probe?: string;
  shards?: string;
  json?: boolean;
  parent?: boolean;
  demo?: boolean;
  paused?: boolean;
}

/** Adds the flags that `serve` and `config` share; each sets the key of its name. */
export function withConfigFlags(command: Command): Command {
  return command
    .option('--config <file>', `configuration file, JSON; or set ${configVariable}`)
    .option('--data <dir>', 'data folder')
    .option('--listen <host:port>', 'address of the device API')
    .option('--admin <host:port>', 'address of the admin API')
    .option('--probe <host:port>', 'address of health checks and metrics in plain HTTP')
    .option('--shards <n>', 'worker threads and shards');
}

export function effectiveConfig(flags: ServeFlags): EffectiveConfig {
  const { config, json: _json, parent: _parent, demo: _demo, paused: _paused, ...values } = flags;
  return loadConfig(config ?? (process.env[configVariable] || undefined), process.env, values);
}

export function addServeCommand(program: Command): void {
  withConfigFlags(program.command('serve').description('run the server until SIGTERM or SIGINT'))
    .option('--json', 'print one JSON document when ready')
    .option('--demo', 'create a demo fleet in a new data folder, and print its device with the secret')
    .option(
      '--paused',
      'start held, also after restarts: forwarders, actions, broadcasts and delayed mail wait for "fleetpost release"',
    )
    .option('--no-parent', 'serve in this process, without a parent that restarts it after a crash')
    .action(async (flags: ServeFlags) => {
      // Before anything starts, so that no signal ends the process midway; a second one cuts drainSeconds short.
      const stopping = new AbortController();
      const hurrying = new AbortController();
      const stop = (cause: string): void =>
        (stopping.signal.aborted ? hurrying : stopping).abort(new Error(cause));
      // Without its parent, the server must stop.
      process
        .on('SIGTERM', stop)
        .on('SIGINT', stop)
        .on('disconnect', () => stop('the parent process ended'));
      const load = (): EffectiveConfig => effectiveConfig(flags);
      const starting = startUnless(stopping.signal, load, flags);
      process.on('SIGHUP', () => {
        // A failed start is reported below.
        starting.then((server) => server?.reload(load)).catch(() => {});
      });
      try {
        const server = await starting;
        if (server !== undefined) await serveUntil(stopping.signal, hurrying.signal, server, flags);
      } finally {
        // Otherwise the channel would keep this process alive.
        if (process.connected) process.disconnect();
      }
    });
}

async function serveUntil(
  signal: AbortSignal,
  hurry: AbortSignal,
  server: RunningServer,
  { json }: ServeFlags,
): Promise<void> {
  announce(server, json ? report(server) : greeting(server));
  if (!signal.aborted) await once(signal, 'abort');
  await server.stop((signal.reason as Error).message, hurry);
}

/** Prints to stdout, or sends to the parent, which prints only the first start; later ones have a log line. */
function announce(server: RunningServer, text: string): void {
  if (process.send === undefined) {
    process.stdout.write(`${text}\n`);
    notifyReady();
    return;
  }
  const { config, url, adminUrl } = server;
  const restartFlags: string[] = [];
  // After a restart, devices and operators expect the server on the same ports.
  for (const [flag, address, taken] of [
    ['--listen', config.listen, url],
    ['--admin', config.admin, adminUrl],
  ] as const) {
    const { host, port } = parseHostPort(address);
    // The URL may name a host of the certificate.
    if (port === 0) restartFlags.push(flag, `${bracketed(host)}:${new URL(taken).port}`);
  }
  const ready: ReadyMessage = { greeting: text, restartFlags };
  process.send(ready);
}

/** Returns undefined if the signal stopped an upgrade or a reshard. */
async function startUnless(
  signal: AbortSignal,
  load: () => EffectiveConfig,
  { demo = false, paused = false }: ServeFlags,
): Promise<RunningServer | undefined> {
  // Imported here, so that other commands do not load the server's libraries.
  const { checkBinaries } = await import('../../device-api/uws/uws-installation.ts');
  checkBinaries();
  const { startServer } = await import('../serve.ts');
  try {
    return await startServer(load(), signal, { wantsDemo: demo, wantsHold: paused });
  } catch (error) {
    if (error !== signal.reason) throw error;
    console.error('Stopped while the data folder was changed. The next start continues it.');
    return undefined;
  }
}

function report(server: RunningServer): string {
  const { url, adminUrl, folder, shards, certFile, held, demo } = server;
  return JSON.stringify({
    url,
    admin_url: adminUrl,
    data: folder.path,
    shards,
    pid: process.pid,
    cert_file: certFile,
    held,
    demo: demo ?? null,
  });
}

function greeting(server: RunningServer): string {
  const { url, adminUrl, folder, config, shards, certFile, fleets, held, demo, consoleLink } = server;
  const inDatabases = config.store.engine === 'postgres';
  const where = inDatabases ? '' : `${folder.path}: `;
  const stores = counted(shards, inDatabases ? 'database' : 'shard');
  const lines = [
    `Fleetpost serves devices on ${url} and operators on ${adminUrl}.`,
    demo === undefined
      ? `${folder.isNew && !inDatabases ? 'Created' : 'Opened'} ${where}${stores}, ${counted(fleets, 'fleet')}. Certificate: ${certFile}.`
      : `Created ${where}${stores}, and a demo device. Its secret is shown only once. Try:`,
  ];
  if (demo !== undefined) lines.push('', ...demoCommands(demo, url, certFile), '');
  if (consoleLink !== undefined) {
    lines.push(
      'Open the console in a browser; this link works once, within ten minutes. Later: fleetpost console.',
      '',
      consoleLink,
      '',
    );
  } else if (demo === undefined && fleets === 0) lines.push('Create a fleet with "fleetpost fleet create".');
  if (held) lines.push(heldText);
  return lines.join('\n');
}

const heldText = 'Held: forwarders, actions, broadcasts and delayed mail wait for "fleetpost release".';
