import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { expect, it } from 'vitest';

const source = new URL('../../src', import.meta.url).pathname;
const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.ts'),
);

/** Which rooms each room may import, besides itself: design.md's table. */
const mayImport: Record<string, string[]> = {
  core: [],
  store: ['core'],
  registry: ['store', 'core'],
  shard: ['store', 'core'],
  engine: ['shard', 'core'],
  nodes: ['access', 'admin', 'engine', 'store', 'core'],
  transfer: ['engine', 'registry', 'shard', 'store', 'core'],
  http: ['registry', 'shard', 'core'],
  actions: ['core'],
  dispatch: ['actions', 'admin', 'registry', 'shard', 'store', 'core'],
  broadcast: ['admin', 'registry', 'shard', 'store', 'core'],
  consume: ['admin', 'registry', 'shard', 'store', 'core'],
  forward: ['admin', 'consume', 'registry', 'shard', 'store', 'core'],
  access: ['admin', 'registry', 'store', 'core'],
  admin: ['actions', 'registry', 'shard', 'core'],
  cluster: [
    'access',
    'broadcast',
    'consume',
    'forward',
    'admin',
    'dispatch',
    'actions',
    'http',
    'nodes',
    'transfer',
    'engine',
    'registry',
    'shard',
    'store',
    'core',
  ],
  client: ['core'],
};
/** Libraries that one room alone may touch. */
const soleImporters: Record<string, string> = {
  lmdb: 'store',
  pg: 'engine',
  msgpackr: 'store',
  'uWebSockets.js': 'http',
  fastify: 'admin',
  'node:worker_threads': 'cluster',
  piscina: 'actions',
  undici: 'forward',
  '@nats-io/transport-node': 'forward',
  '@nats-io/transport-node/lib/node_transport.js': 'forward',
  '@nats-io/jetstream': 'forward',
};
/** From the seam, http and admin know the interface alone. */
const seam = 'shard/shard.ts';

interface Import {
  from: string;
  room: string;
  target: string;
  typeOnly: boolean;
}

function importsOf(file: string): Import[] {
  const text = readFileSync(join(source, file), 'utf8');
  const found = text.matchAll(/^(?:import|export)\s(type\s)?[^;]*?from '([^']+)';/gm);
  const dynamic = text.matchAll(/import\('([^']+)'\)/g);
  const all: [string, boolean][] = [...found].map((one) => [one[2] ?? '', one[1] !== undefined]);
  all.push(...[...dynamic].map((one): [string, boolean] => [one[1] ?? '', false]));
  return all.map(([target, typeOnly]) => {
    const local = target.startsWith('.') ? relative(source, resolve(source, dirname(file), target)) : target;
    return {
      from: file,
      room: file.includes('/') ? (file.split('/')[0] ?? '') : 'main',
      target: local,
      typeOnly,
    };
  });
}

const imports = files.flatMap(importsOf);

it('rooms import only what design.md allows them', () => {
  const broken = imports.filter(({ room, target }) => {
    if (room === 'main' || !target.endsWith('.ts')) return false;
    const other = target.split('/')[0] ?? '';
    return other !== room && !mayImport[room]?.includes(other);
  });
  expect(broken).toEqual([]);
});

it('http and admin know of a shard its interface alone', () => {
  const broken = imports.filter(
    ({ room, target }) =>
      (room === 'http' || room === 'admin') && target.startsWith('shard/') && target !== seam,
  );
  expect(broken).toEqual([]);
});

it('a library that belongs to one room is imported by no other', () => {
  const broken = imports.filter(({ room, target, typeOnly }) => {
    const owner = soleImporters[target];
    return owner !== undefined && owner !== room && !typeOnly;
  });
  expect(broken).toEqual([]);
});

it('no import cycle', () => {
  const graph = new Map(
    files.map((file) => [file, imports.filter((one) => one.from === file && !one.typeOnly)]),
  );
  const done = new Set<string>();
  const visit = (file: string, path: string[]): void => {
    expect(path, `cycle through ${file}`).not.toContain(file);
    if (done.has(file)) return;
    for (const { target } of graph.get(file) ?? []) if (graph.has(target)) visit(target, [...path, file]);
    done.add(file);
  };
  for (const file of files) visit(file, []);
});

it('no file is longer than 300 lines, and no folder is a drawer', () => {
  for (const file of files) {
    expect(readFileSync(join(source, file), 'utf8').split('\n').length, file).toBeLessThanOrEqual(300);
    expect(file).not.toMatch(/(^|\/)(utils?|common|helpers?|types|interfaces|misc)(\/|\.ts$)/);
  }
});
