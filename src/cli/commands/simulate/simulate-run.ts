import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathTo } from '../../../contract/routes/path.ts';
import { tokenVariable } from '../../../core/config/client-variables.ts';
import { OperatorError } from '../../../core/errors.ts';
import { addressOf, OwnServers } from '../../../device/simulator/run/own-servers.ts';
import { isPassed, reportDocument, reportText } from '../../../device/simulator/run/report.ts';
import { Simulation, type SimulationTarget } from '../../../device/simulator/run/simulation.ts';
import type { ScenarioDocument } from '../../../device/simulator/scenario/profile.ts';
import { parseDuration } from '../../../device/simulator/scenario/quantity.ts';
import { chaosEvents, scenarioOf } from '../../../device/simulator/scenario/scenario.ts';
import { AdminClient } from '../../admin-client.ts';
import { type ConnectionOptions, connect } from '../../connection.ts';
import { print, printable } from '../../output.ts';
import { SimulationView } from './simulation-view.ts';

/** Options of a run, whatever it runs. */
export interface RunOptions extends ConnectionOptions {
  url?: string;
  ca?: string;
  processes?: number;
  connections?: number;
  assert?: string;
  ownServer?: boolean;
  chaos?: boolean;
  nodes: number;
  shards?: number;
  database?: string[];
}

const usualUrl = 'https://127.0.0.1:8443';

/** Runs a scenario as a command: shows it, prints what came of it, and sets the exit status. @throws OperatorError */
export async function runScenario(document: ScenarioDocument, options: RunOptions): Promise<void> {
  const seed = document.seed ?? 1;
  const scenario = scenarioOf({
    ...document,
    ...(options.assert !== undefined && { assert: options.assert }),
    ...(options.chaos && {
      events: [...(document.events ?? []), ...chaosEvents(parseDuration(document.for), seed)],
    }),
  });
  const isOwn = options.ownServer === true || options.chaos === true || options.database !== undefined;
  if (!isOwn && scenario.events.some(({ event }) => event === 'kill'))
    throw new OperatorError('A scenario with kills needs a server of its own: --own-server.');
  if (options.nodes > 1 && options.database === undefined)
    throw new OperatorError('Several nodes need a database: --database URL.');
  const folder = isOwn ? mkdtempSync(join(tmpdir(), 'fleetpost-simulate-')) : undefined;
  try {
    await using servers = folder === undefined ? undefined : await startServers(folder, options);
    const target = servers === undefined ? targetOf(options) : targetOfOwn(servers);
    const ending = new AbortController();
    using view = new SimulationView(options, () => ending.abort());
    const simulation = new Simulation(scenario, target, view, options);
    view.show(simulation.figures, scenario, () => consoleLink(target));
    const result = await simulation.run(AbortSignal.any([ending.signal, view.signal]));
    view.end();
    print(options, reportDocument(scenario, result), reportText(scenario, result));
    if (!isPassed(result)) process.exitCode = 1;
  } finally {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  }
}

function startServers(folder: string, { nodes, database = [], shards = 2 }: RunOptions): Promise<OwnServers> {
  return OwnServers.start(folder, { nodes, databases: database, shards });
}

function targetOfOwn(servers: OwnServers): SimulationTarget {
  return {
    admins: () => servers.up.map(({ adminUrl, token }) => new AdminClient({ url: adminUrl, token })),
    nodes: servers.nodes,
    servers,
  };
}

/** A server that runs already: on this machine, or one whose token was given on purpose. @throws OperatorError */
function targetOf(options: RunOptions): SimulationTarget {
  const admin = connect(options);
  const url = options.url ?? usualUrl;
  if (!URL.canParse(url) || !url.startsWith('https://'))
    throw new OperatorError('--url must be an HTTPS URL, like https://127.0.0.1:8443.');
  const isOnPurpose =
    options.token !== undefined || options.context !== undefined || process.env[tokenVariable] !== undefined;
  for (const one of [admin.url, url]) {
    if (!isOnPurpose && !isLoopback(new URL(one).hostname)) {
      throw new OperatorError(
        `${printable(one)} is not on this machine: give its --token or --context, if that server is to be loaded.`,
      );
    }
  }
  return { admins: () => [admin], nodes: [addressOf(url, readCa(options))], servers: undefined };
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}

/** @throws OperatorError */
function readCa({ ca, data = process.env.FLEETPOST_DATA || './data' }: RunOptions): string {
  const file = ca ?? join(data, 'tls', 'cert.pem');
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new OperatorError(
      `The certificate of the device API cannot be read, give it by --ca: ${(error as Error).message}.`,
    );
  }
}

/** A link into the console, which works once within a minute. */
async function consoleLink(target: SimulationTarget): Promise<string | undefined> {
  const [admin] = target.admins();
  if (admin === undefined) return undefined;
  try {
    const { code } = await admin.request('POST', pathTo('/console-codes', {}), { json: {} });
    return `${admin.url}/console/#code=${code}`;
  } catch {
    // A token may not; the run goes on without.
    return undefined;
  }
}
