/** The structure of `src` and of the tests: what can be counted. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import ts from 'typescript';
import { expect, it } from 'vitest';
import { longest } from './longest-first.ts';
import { projects } from './vitest.config.ts';

const source = new URL('../src', import.meta.url).pathname;
const names = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((name) =>
  /\.tsx?$/.test(name),
);

/**
 * Imports allowed to each part of the house, besides itself: a part is the longest of these that a path begins with,
 * and each feature is one of its own. `'*'` is everything.
 */
const mayImport: Record<string, readonly string[]> = {
  core: [],
  // The documents of the admin API, for both of its ends.
  contract: ['core'],
  domain: ['core'],
  storage: ['core'],
  'storage/tables': ['domain', 'core'],
  'storage/lmdb': ['storage/tables', 'storage/config', 'domain', 'core'],
  'storage/postgres': ['storage/config', 'domain', 'core'],
  declarations: ['storage/tables', 'domain', 'core'],
  features: [
    'admin-api/request',
    'contract',
    'features/records',
    'features/dead-letters',
    // A forwarder reads the log as a consumer of its own.
    'features/consumers',
    'declarations',
    'storage/tables',
    'storage/config',
    'domain',
    'core',
  ],
  // Its log on a database is a table of its own, which no shard knows of.
  'features/audit': [
    'admin-api/request',
    'contract',
    'storage/postgres/connection',
    'storage/tables',
    'domain',
    'core',
  ],
  // They copy the files of the data folder.
  'features/backups': [
    'admin-api/request',
    'contract',
    'storage/lmdb/environment',
    'storage/config',
    'domain',
    'core',
  ],
  'device-api': ['declarations', 'storage/config', 'domain', 'core'],
  // No feature: `server` lists their routes and metrics.
  'admin-api': ['declarations', 'contract', 'domain', 'core'],
  threads: ['device-api', 'declarations', 'storage', 'domain', 'core'],
  nodes: ['storage', 'domain', 'core'],
  maintenance: ['features', 'declarations', 'storage', 'domain', 'core'],
  server: ['*'],
  cli: ['contract', 'core', 'device'],
  // In the browser: of the server it knows the documents, as types, and the words for them.
  console: ['contract', 'core/scope'],
  // On devices: nothing of the server goes there.
  device: [],
  'device/agent': ['device/client'],
  'device/simulator': ['device/client', 'contract', 'core'],
  '': ['*'],
};
/** Libraries that only these parts may touch. */
const importersOf: Record<string, readonly string[]> = {
  lmdb: ['storage/lmdb/environment'],
  pg: ['storage/postgres/connection'],
  msgpackr: ['storage/tables'],
  'sorted-btree': ['nodes'],
  fastify: ['admin-api'],
  'node:worker_threads': [
    'threads',
    'maintenance/reshard-folder',
    'features/actions/pool',
    'declarations/schema-checks',
    'features/actions/compiler',
  ],
  typescript: ['features/actions/compiler'],
  piscina: ['features/actions/pool'],
  preact: ['console'],
  'preact/hooks': ['console'],
  '@preact/signals': ['console'],
  uplot: ['console'],
  undici: ['features/forwarders/senders'],
  '@nats-io/transport-node': ['features/forwarders/senders'],
  '@nats-io/transport-node/lib/node_transport.js': ['features/forwarders/senders'],
  '@nats-io/jetstream': ['features/forwarders/senders'],
};
/** Types for the authors of actions, whose world has names of its own. */
const apiOfActions = 'features/actions/pool/api.ts';
/** Handed to the sandbox as its source text, in one piece. */
const glueOfSandbox = 'features/actions/sandbox/glue.ts';
const filesMax = 15;
const fileLinesMax = 400;
const functionLinesMax = 70;
/** Below that, a file that one other imports is a crumb of it: few of them are ideas of their own. */
const crumbLines = 25;
const crumbsMax = 20;

const { dependencies, devDependencies } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
) as Record<'dependencies' | 'devDependencies', Record<string, string>>;

/** Calls that load a module, or find the file of one. */
const loaders = /^(import(\.meta\.resolve)?|(createRequire\(import\.meta\.url\)|require)(\.resolve)?)$/;

interface Import {
  from: string;
  target: string;
  /** Name of the package, of one that is not ours. */
  library: string | undefined;
  typeOnly: boolean;
}

interface Source {
  name: string;
  tree: ts.SourceFile;
  imports: Import[];
}

const sources: Source[] = names.map((name) => {
  const text = readFileSync(join(source, name), 'utf8');
  const tree = ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true);
  const imports: Import[] = [];
  const add = (specifier: ts.Node | undefined, typeOnly: boolean): void => {
    if (specifier === undefined || !ts.isStringLiteral(specifier)) return;
    const isOurs = specifier.text.startsWith('.');
    const target = isOurs ? relative(source, resolve(source, dirname(name), specifier.text)) : specifier.text;
    const library = /^(?!\.|node:|fleetpost:)(@[^/]+\/)?[^/]+/.exec(specifier.text)?.[0];
    imports.push({ from: name, target, library, typeOnly });
  };
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node))
      add(node.moduleSpecifier, node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword);
    if (ts.isExportDeclaration(node)) add(node.moduleSpecifier, node.isTypeOnly);
    if (ts.isCallExpression(node) && loaders.test(node.expression.getText())) add(node.arguments[0], false);
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return { name, tree, imports };
});
const imports = sources.flatMap((one) => one.imports);

const isWithin = (path: string, part: string): boolean =>
  part === '' || path.replace(/\.tsx?$/, '') === part || path.startsWith(`${part}/`);
const parts = Object.keys(mayImport).sort((a, b) => b.length - a.length);

/** The part that a file is of; of features, each by itself. */
function partOf(path: string): string {
  const part = parts.find((one) => isWithin(path, one)) ?? '';
  return part === 'features' ? path.split('/', 2).join('/') : part;
}

function isAllowed({ from, target }: Import): boolean {
  const part = partOf(from);
  const allowed = mayImport[part] ?? mayImport.features ?? [];
  // Only a feature's routes, and what it says in the list of attention, know what its documents look like.
  const isOfDocuments = /(routes|\/attention)\.ts$/.test(from);
  if (isWithin(from, 'features') && isWithin(target, 'contract') && !isOfDocuments) return false;
  return isWithin(target, part) || allowed.some((one) => one === '*' || isWithin(target, one));
}

it('each part imports only what the table allows it', () => {
  expect(imports.filter((one) => /\.tsx?$/.test(one.target) && !isAllowed(one))).toEqual([]);
});

it('the commands and the console know of the contract its types, and load of it only what loads nothing', () => {
  /** True if a file of the contract loads nothing, or only others that load nothing. */
  const isBare = (name: string): boolean =>
    isWithin(name, 'contract') &&
    imports.every(({ from, target, typeOnly }) => from !== name || typeOnly || isBare(target));
  const loaded = imports.filter(({ from, target, typeOnly }) => {
    const isOfCommand = isWithin(from, 'cli') && isWithin(target, 'contract');
    const isOfConsole = isWithin(from, 'console') && !isWithin(target, 'console') && /\.tsx?$/.test(target);
    return (isOfCommand || isOfConsole) && !typeOnly && !isBare(target);
  });
  expect(loaded).toEqual([]);
});

it('a library that belongs to some parts is imported by no other', () => {
  const broken = imports.filter(({ from, target, typeOnly }) => {
    const owners = importersOf[target];
    return owners !== undefined && !owners.some((one) => isWithin(from, one)) && !typeOnly;
  });
  expect(broken).toEqual([]);
});

it('the dependencies are what the server loads: what builds it, or the console, and types are devDependencies', () => {
  const loaded = imports.filter(({ from, typeOnly }) => !isWithin(from, 'console') && !typeOnly);
  const libraries = new Set(loaded.flatMap(({ library }) => library ?? []));
  expect([...libraries].sort()).toEqual(Object.keys(dependencies).sort());
});

it('a library that is imported is declared, also where another brings it along', () => {
  const declared = { ...dependencies, ...devDependencies };
  expect(imports.filter(({ library }) => library !== undefined && !(library in declared))).toEqual([]);
});

/** Expects no way from a name back to itself. */
function expectNoCycle(graph: ReadonlyMap<string, Iterable<string>>): void {
  const done = new Set<string>();
  const visit = (name: string, path: string[]): void => {
    expect(path, `cycle through ${name}`).not.toContain(name);
    if (done.has(name)) return;
    for (const target of graph.get(name) ?? []) if (graph.has(target)) visit(target, [...path, name]);
    done.add(name);
  };
  for (const name of graph.keys()) visit(name, []);
}

it('no import cycle, those of types included', () => {
  expectNoCycle(new Map(sources.map(({ name, imports: own }) => [name, own.map(({ target }) => target)])));
});

it('no circle among the rooms of the house, the folders of the first level', () => {
  const roomOf = (path: string): string => path.split('/', 1)[0] ?? '';
  const rooms = new Map<string, Set<string>>();
  for (const { from, target } of imports.filter((one) => /\.tsx?$/.test(one.target))) {
    const targets = rooms.get(roomOf(from)) ?? new Set();
    rooms.set(roomOf(from), targets);
    if (roomOf(target) !== roomOf(from)) targets.add(roomOf(target));
  }
  expectNoCycle(rooms);
});

it('no folder is a drawer, or has more files than can be seen at once', () => {
  const counts = new Map<string, number>();
  for (const name of names) {
    expect(name).not.toMatch(/(^|\/)(utils?|common|helpers?|types|interfaces|misc)(\/|\.ts$)/);
    counts.set(dirname(name), (counts.get(dirname(name)) ?? 0) + 1);
  }
  expect([...counts].filter(([, count]) => count > filesMax)).toEqual([]);
});

it('files and functions are short enough to be read', () => {
  const tooLong: string[] = [];
  for (const { name, tree } of sources) {
    const lineOf = (position: number): number => tree.getLineAndCharacterOfPosition(position).line;
    if (lineOf(tree.end) > fileLinesMax) tooLong.push(`${name}: ${lineOf(tree.end)} lines`);
    const visit = (node: ts.Node): void => {
      const lines = lineOf(node.end) - lineOf(node.getStart()) + 1;
      const isLong = lines > functionLinesMax && name !== glueOfSandbox;
      if (ts.isFunctionLike(node) && 'body' in node && node.body && isLong)
        tooLong.push(`${name}:${lineOf(node.getStart()) + 1}: a function of ${lines} lines`);
      ts.forEachChild(node, visit);
    };
    visit(tree);
  }
  for (const name of readdirSync(source, { recursive: true, encoding: 'utf8' })) {
    const lines = name.endsWith('.css') ? readFileSync(join(source, name), 'utf8').split('\n').length - 1 : 0;
    if (lines > fileLinesMax) tooLong.push(`${name}: ${lines} lines`);
  }
  expect(tooLong).toEqual([]);
});

it('few files are crumbs: so short that they may as well stand in the one file that imports them', () => {
  const importers = new Map<string, Set<string>>();
  for (const { from, target } of imports)
    importers.set(target, (importers.get(target) ?? new Set()).add(from));
  const crumbs = sources.filter(({ name, tree }) => {
    const lines = tree.getLineAndCharacterOfPosition(tree.end).line;
    return lines < crumbLines && importers.get(name)?.size === 1;
  });
  expect(crumbs.length, crumbs.map(({ name }) => name).join('\n')).toBeLessThanOrEqual(crumbsMax);
});

it('a name is exported once', () => {
  const exporters = new Map<string, Set<string>>();
  for (const { name, tree } of sources.filter((one) => one.name !== apiOfActions)) {
    for (const statement of tree.statements) {
      const isExported =
        ts.canHaveModifiers(statement) &&
        ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
      if (!isExported) continue;
      const declared = ts.isVariableStatement(statement)
        ? statement.declarationList.declarations.map(({ name: one }) => one.getText())
        : 'name' in statement
          ? [(statement.name as ts.Identifier).text]
          : [];
      for (const one of declared) exporters.set(one, (exporters.get(one) ?? new Set()).add(name));
    }
  }
  const twice = [...exporters].filter(([, files]) => files.size > 1).map(([one, files]) => [one, ...files]);
  expect(twice).toEqual([]);
});

const testFolder = new URL('.', import.meta.url).pathname;
const tests = readdirSync(testFolder, { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.test.ts'),
);

it('a test has the path of its subject, or its first line says what it is of', () => {
  const silent = tests.filter((name) => {
    const subject = join(source, dirname(name), basename(name).replace(/\..*/, ''));
    if (['', '.ts', '.tsx'].some((ending) => existsSync(subject + ending))) return false;
    return !readFileSync(join(testFolder, name), 'utf8').startsWith('/**');
  });
  expect(silent).toEqual([]);
});

it('a test has a suffix that some project runs', () => {
  const known = projects.flatMap(({ include = [] }) => include);
  const forgotten = tests.filter((name) => {
    const suffix = basename(name).replace(/^[^.]+/, '');
    return !known.some((pattern) => pattern.endsWith(`)${suffix}`));
  });
  expect(forgotten).toEqual([]);
});

it('the files that begin first are there', () => {
  expect(longest.filter((name) => !tests.includes(`${name}.test.ts`))).toEqual([]);
});
