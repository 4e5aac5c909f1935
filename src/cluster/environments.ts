import { chmodSync } from 'node:fs';
import { broadcastTables } from '../broadcast/tables.ts';
import { consumerTables } from '../consume/tables.ts';
import type { Config } from '../core/config.ts';
import { type ActionJournal, actionTables } from '../dispatch/tables.ts';
import { forwarderTables } from '../forward/tables.ts';
import { registryTables } from '../registry/registry.ts';
import { Environment } from '../store/environment.ts';
import { Journal } from '../store/journal.ts';

/** What the main thread alone reads and writes is also looked at by tools while it is in use. */
const readersMax = 32;

type Limits = Pick<Config, 'mapBytesMax' | 'diskFreeBytesMin'>;

/** Its map is bounded by the same key as a shard's. */
export function openRegistry(path: string, limits: Limits): Environment {
  const environment = open(path, registryTables, limits);
  // Forwarders have secrets there, whatever the mode of the data folder is that somebody made for us.
  chmodSync(path, 0o700);
  return environment;
}

export function openJournal(path: string, limits: Limits): ActionJournal {
  return new Journal(open(path, actionTables, limits), actionTables, 'The store of actions');
}

/** Of `DATA/control`: each belongs to the room that reads it. */
const controlTables = [...broadcastTables, ...consumerTables, ...forwarderTables, 'audit'] as const;
export type ControlJournal = Journal<(typeof controlTables)[number]>;

export function openControl(path: string, limits: Limits): ControlJournal {
  return new Journal(open(path, controlTables, limits), controlTables, 'The store of jobs and consumers');
}

function open(
  path: string,
  tables: readonly string[],
  { mapBytesMax, diskFreeBytesMin }: Limits,
): Environment {
  const commits = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  return new Environment({ path, tables, mapBytesMax, diskFreeBytesMin, readersMax, commits });
}
