import { adminKeys } from '../../src/admin-api/config.ts';
import { telemetryKeys } from '../../src/core/telemetry/config.ts';
import { declarationKeys } from '../../src/declarations/config.ts';
import { deviceApiKeys } from '../../src/device-api/config.ts';
import { domainKeys } from '../../src/domain/config.ts';
import { actionKeys } from '../../src/features/actions/config.ts';
import { auditKeys } from '../../src/features/audit/config.ts';
import { broadcastKeys } from '../../src/features/broadcasts/config.ts';
import { claimingKeys } from '../../src/features/claiming/config.ts';
import { consumerKeys } from '../../src/features/consumers/config.ts';
import { forwarderKeys } from '../../src/features/forwarders/config.ts';
import {
  type ConfigKey,
  configDefault,
  configDescription,
  configKeys,
  configType,
  environmentName,
  isReloadable,
} from '../../src/server/configuration/config.ts';
import { storageKeys } from '../../src/storage/config.ts';
import { threadKeys } from '../../src/threads/config.ts';
import { code, type Lines, page, table } from './markdown.ts';

const rooms: readonly (readonly [title: string, keys: object])[] = [
  ['Device API', deviceApiKeys],
  ['Admin API', adminKeys],
  ['Storage', storageKeys],
  ['Threads', threadKeys],
  ['Devices, mail and records', domainKeys],
  ['Fleets, schemas and tokens', declarationKeys],
  ['Actions', actionKeys],
  ['Consumers and record streams', consumerKeys],
  ['Forwarders', forwarderKeys],
  ['Broadcasts', broadcastKeys],
  ['Audit log', auditKeys],
  ['Claiming', claimingKeys],
  ['Logs and traces', telemetryKeys],
];

function bounds(key: ConfigKey): string {
  const { type, minimum, maximum, enum: words, patternText } = configType(key);
  if (words !== undefined) return words.join(', ');
  if (patternText !== undefined) return patternText;
  return type === 'integer' ? `${minimum} to ${maximum}` : type;
}

function row(key: ConfigKey): string[] {
  // The number depends on this machine, or on its data folder.
  const value = key === 'shards' ? 'one for each 4 cores' : code(JSON.stringify(configDefault(key)));
  const names = `${code(key)} ${code(environmentName(key))}`;
  return [names, value, bounds(key), isReloadable(key) ? 'yes' : '', configDescription(key)];
}

/** Every key of the configuration, by what it is about. */
export function configurationPage(): string {
  const inRoom = new Set(rooms.flatMap(([, keys]) => Object.keys(keys)));
  const ofServer = configKeys.filter((key) => !inRoom.has(key));
  const groups = [...rooms, ['Server', Object.fromEntries(ofServer.map((key) => [key, key]))] as const];
  const lines: Lines = [
    'The configuration is one JSON file (`--config FILE`), then environment variables, then flags; the later wins. An',
    'unknown key or a bad value is refused at start. `fleetpost config` prints the values in effect and where each is from.',
    'Keys with *yes* under SIGHUP change in a running server that gets this signal; all others at its next start.',
    '',
  ];
  for (const [title, keys] of groups) {
    const own = configKeys.filter((key) => Object.hasOwn(keys, key));
    lines.push(`## ${title}`, '');
    lines.push(
      ...table(['Key, environment variable', 'Default', 'Allowed', 'SIGHUP', 'What it is'], own.map(row)),
    );
  }
  return page('Configuration', 'operators: every key, its default and what it does.', lines);
}
