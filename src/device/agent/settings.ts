import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { parseServerUrl, type ServerAddress } from '../client/connection.ts';
import type { DeviceIdentity } from '../client/link.ts';
import { createTrust } from '../client/trust.ts';
import { usageError } from './agent-error.ts';

/** The SDKs' socket path, whatever TMPDIR is. */
const socketPathDefault = '/tmp/fostrom/agent.sock';

/** Settings that an agent needs before it runs. */
export interface AgentSettings {
  identity: DeviceIdentity;
  secret: string;
  address: ServerAddress;
  socketPath: string;
  queuePath: string | undefined;
}

/** The words of a command line, without its options. */
export interface AgentCommand {
  words: string[];
  environment: NodeJS.ProcessEnv;
}

const variableOf = {
  url: 'FLEETPOST_URL',
  ca: 'FLEETPOST_CA',
  pins: 'FLEETPOST_PINS',
  queue: 'FLEETPOST_QUEUE',
  socket: 'FLEETPOST_SOCKET',
} as const;

/** Reads a command line: options are the same as variables of the environment, and go before them. */
export function readCommand(args: readonly string[], environment: NodeJS.ProcessEnv): AgentCommand {
  try {
    const names = Object.keys(variableOf) as (keyof typeof variableOf)[];
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: Object.fromEntries(names.map((name) => [name, { type: 'string' as const }])),
    });
    const given = names.flatMap((name) =>
      values[name] === undefined ? [] : [[variableOf[name], values[name]]],
    );
    return { words: positionals, environment: { ...environment, ...Object.fromEntries(given) } };
  } catch (error) {
    throw usageError('invalid_option', (error as Error).message);
  }
}

/** Path of the agent's socket: `FLEETPOST_SOCKET`, or where the SDKs look. */
export function socketPathIn(environment: NodeJS.ProcessEnv): string {
  return environment.FLEETPOST_SOCKET || socketPathDefault;
}

/** Tells whether the folder of the socket is the agent's own. */
export function isDefaultPath(socketPath: string): boolean {
  return socketPath === socketPathDefault;
}

/** Who the device is. */
export function identityIn(environment: NodeJS.ProcessEnv): DeviceIdentity {
  return {
    fleet: checked(
      environment,
      'FOSTROM_FLEET_ID',
      'invalid_fleet_id',
      /^[A-Za-z0-9]{8}$/,
      '8 letters or digits',
    ),
    id: checked(
      environment,
      'FOSTROM_DEVICE_ID',
      'invalid_device_id',
      /^[A-Za-z0-9]{10}$/,
      '10 letters or digits',
    ),
  };
}

/** Reads everything that `run` needs. @throws AgentError if it is not there, or cannot be right. */
export function readSettings(environment: NodeJS.ProcessEnv): AgentSettings {
  const identity = identityIn(environment);
  const secret = checked(
    environment,
    'FOSTROM_DEVICE_SECRET',
    'invalid_device_secret',
    /^FOS-[A-Za-z0-9]{32}$/,
    'FOS- and 32 letters or digits',
  );
  const {
    FLEETPOST_URL: url = '',
    FLEETPOST_CA: caFile,
    FLEETPOST_PINS: pins,
    FLEETPOST_QUEUE: queue,
  } = environment;
  if (url === '') throw usageError('missing_url', 'FLEETPOST_URL or --url: https://HOST:PORT of the server.');
  try {
    const ca = caFile ? readFileSync(caFile, 'utf8') : undefined;
    const trust = createTrust(ca, pins ? pins.split(/[ ,]+/) : []);
    const address = { ...parseServerUrl(url), trust };
    return {
      identity,
      secret,
      address,
      socketPath: socketPathIn(environment),
      queuePath: queue || undefined,
    };
  } catch (error) {
    throw usageError('invalid_setting', (error as Error).message);
  }
}

function checked(
  environment: NodeJS.ProcessEnv,
  name: string,
  atom: string,
  format: RegExp,
  description: string,
): string {
  const value = environment[name] ?? '';
  if (!format.test(value))
    throw usageError(atom, `${name} is ${value === '' ? 'missing' : `not ${description}`}.`);
  return value;
}
