import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type FormatStep,
  formatSteps,
  type TableChange,
} from '../../../src/maintenance/upgrade-folder/format-steps.ts';
import type { ServerReport } from '../../harness/server/server.ts';
import { openEnvironment } from '../../harness/storage/environment.ts';

/** Tables of the journals and the registry in the made-up format, which no change of theirs must meet twice. */
const inverted = [
  { environment: 'shards', table: 'devices' },
  { environment: 'shards', table: 'log' },
  { environment: 'shards', table: 'idempotency' },
  { environment: 'registry', table: 'fleets' },
  { environment: 'control', table: 'audit' },
] as const;
/** Mails are in a table of another name. */
const formerMail = 'letters';

function invert(value: Buffer): Buffer {
  return Buffer.from(value.map((byte) => byte ^ 0xff));
}

/** Takes as long as the walk of a large folder does, so that kills come in between. */
function takeTime(): void {
  const endMs = performance.now() + 0.02;
  while (performance.now() < endMs);
}

/**
 * Steps from format 0, which there never was: done twice to a record, it would be undone. Behind them those that there
 * are.
 */
export const madeUpSteps: ReadonlyMap<number, FormatStep> = new Map([
  [
    0,
    [
      ...inverted.map(
        ({ environment, table: name }): TableChange => ({
          environment,
          table: name,
          change({ key, value, table }) {
            takeTime();
            table(name).putSync(key, invert(value));
          },
        }),
      ),
      {
        environment: 'shards',
        table: formerMail,
        targets: ['mail'],
        change({ key, value, table }) {
          takeTime();
          table('mail').putSync(key, value);
          table(formerMail).removeSync(key);
        },
      },
    ],
  ],
  ...formatSteps,
]);

export interface FormatManifest {
  format: number;
  upgradingFrom?: number;
  version?: string;
}

export function readFormat(data: string): FormatManifest {
  return JSON.parse(readFileSync(join(data, 'manifest.json'), 'utf8')) as FormatManifest;
}

export function changeManifest(file: string, change: (manifest: FormatManifest) => void): void {
  const content = JSON.parse(readFileSync(file, 'utf8')) as FormatManifest & { manifest?: FormatManifest };
  change(content.manifest ?? content);
  writeFileSync(file, JSON.stringify(content));
}

/** Takes the folder of a stopped server back to format 0. */
export async function toMadeUpFormat({ data, shards }: ServerReport): Promise<void> {
  const folders = {
    shards: Array.from({ length: shards }, (_, shard) => join('shards', String(shard))),
    registry: ['registry'],
    control: ['control'],
  };
  for (const { environment, table: name } of inverted) {
    for (const folder of folders[environment]) {
      const opened = openEnvironment(join(data, folder), [name]);
      const table = opened.table(name);
      const rows = [...table.getRange({})].map(({ key, value }) => [key, invert(value)] as const);
      opened.writeSync(() => {
        for (const [key, value] of rows) table.putSync(key, value);
      });
      await opened.close();
    }
  }
  for (const folder of folders.shards) {
    const opened = openEnvironment(join(data, folder), ['mail', 'fleetMail', formerMail]);
    const rows = [...opened.table('mail').getRange({})].map(({ key, value }) => [key, value] as const);
    opened.writeSync(() => {
      opened.table('fleetMail').clearSync();
      for (const [key, value] of rows) {
        opened.table(formerMail).putSync(key, Buffer.from(value));
        opened.table('mail').removeSync(key);
      }
    });
    await opened.close();
  }
  changeManifest(join(data, 'manifest.json'), (manifest) => {
    manifest.format = 0;
  });
}
