/** Documents against the code: links, commands, keys, limits, tables. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Command, CommanderError } from 'commander';
import { describe, expect, it, vi } from 'vitest';
import { alerts } from '../src/cli/commands/server/prometheus-alerts.ts';
import { runErrorCode } from '../src/contract/action-run.ts';
import { importedMembers } from '../src/contract/columns/device.ts';
import { anyDestination } from '../src/contract/destination-text.ts';
import { deviceLine } from '../src/contract/device.ts';
import { forwarderDocument } from '../src/contract/forwarder.ts';
import { isClientVariable } from '../src/core/config/client-variables.ts';
import { credentialDetails } from '../src/core/errors.ts';
import { routeNames } from '../src/device-api/server/server.ts';
import { descriptionFields } from '../src/domain/devices/device-fields.ts';
import { createWholeProgram } from '../src/server/commands/command.ts';
import { type ConfigKey, configKeys, environmentName } from '../src/server/configuration/config.ts';

const root = new URL('..', import.meta.url).pathname;
const filesBelow = (folder: string, ending: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending))
    .map((name) => join(folder, name))
    .sort();

interface Page {
  /** Path from the top of the repository. */
  path: string;
  lines: readonly string[];
  /** Outside of blocks. */
  prose: readonly string[];
  blocks: readonly Block[];
}

interface Block {
  language: string;
  text: string;
}

function readPage(path: string): Page {
  const lines = readFileSync(join(root, path), 'utf8').trimEnd().split('\n');
  const prose: string[] = [];
  const blocks: Block[] = [];
  let open: { fence: string; language: string; from: number } | undefined;
  for (const [index, line] of lines.entries()) {
    const [, fence = '', language = ''] = /^\s*(```+)(.*)$/.exec(line) ?? [];
    if (open === undefined && fence === '') prose.push(line);
    else if (open === undefined) open = { fence, language: language.trim(), from: index + 1 };
    else if (fence === open.fence) {
      blocks.push({ language: open.language, text: lines.slice(open.from, index).join('\n') });
      open = undefined;
    }
  }
  expect(open, `${path} has a block without an end`).toBeUndefined();
  return { path, lines, prose, blocks };
}

const pages = ['README.md', 'CONTRIBUTING.md', ...filesBelow('docs', '.md')].map(readPage);
const isGenerated = ({ path }: Page): boolean => path.startsWith('docs/reference/');
const isInternal = ({ path }: Page): boolean =>
  path.startsWith('docs/internals/') || path === 'CONTRIBUTING.md';
const pageAt = (path: string): Page => {
  const page = pages.find((one) => one.path === path);
  if (page === undefined) throw new Error(`There is no page ${path}.`);
  return page;
};
const spansOf = ({ prose }: Page): string[] =>
  [...prose.join('\n').matchAll(/`([^`]+)`/g)].map(([, span = '']) => span.replace(/\s+/g, ' '));

describe('links', () => {
  /** GitHub's. */
  function anchorsOf({ prose }: Page): Set<string> {
    const anchors = new Set<string>();
    for (const line of prose) {
      const [, heading] = /^#+ (.*)$/.exec(line) ?? [];
      if (heading === undefined) continue;
      const words = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
      const slug = words.replace(/[^\p{L}\p{N}\s_-]/gu, '').replace(/ /g, '-');
      let anchor = slug;
      for (let again = 1; anchors.has(anchor); again += 1) anchor = `${slug}-${again}`;
      anchors.add(anchor);
    }
    return anchors;
  }

  function linksOf({ prose }: Page): string[] {
    const text = prose.join('\n').replace(/`[^`]*`/g, '');
    return [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
  }

  it('each leads to a file, and to a heading of it', () => {
    const broken: string[] = [];
    for (const page of pages) {
      for (const target of linksOf(page).filter((one) => !/^https?:/.test(one))) {
        const [file = '', anchor] = target.split('#');
        const path = file === '' ? page.path : join(dirname(page.path), file);
        const other = pages.find((one) => one.path === path);
        const isThere = existsSync(join(root, path));
        const isHeading = anchor === undefined || (other !== undefined && anchorsOf(other).has(anchor));
        if (!isThere || !isHeading) broken.push(`${page.path}: ${target}`);
      }
    }
    expect(broken).toEqual([]);
  });

  it('what a page that is shipped links to is shipped with it', () => {
    const { files } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { files: string[] };
    // npm adds it.
    const isShipped = (path: string): boolean =>
      path === 'README.md' || files.some((file) => path === file || path.startsWith(`${file}/`));
    const missing = pages
      .filter(({ path }) => path.startsWith('docs/'))
      .flatMap((page) =>
        linksOf(page)
          .filter((target) => !/^https?:|^#/.test(target))
          .map((target) => join(dirname(page.path), target.split('#')[0] ?? '')),
      )
      .filter((path) => !isShipped(path));
    expect([...new Set(missing)]).toEqual([]);
  });

  it('the index has every page, but for the parts of generated ones', () => {
    const index = new Set(linksOf(pageAt('docs/README.md')).map((target) => join('docs', target)));
    const wanted = pages.filter(({ path }) => path.split('/').length === 3).map(({ path }) => path);
    expect(wanted.filter((path) => !index.has(path))).toEqual([]);
  });
});

describe('pages', () => {
  it('README has at most 180 lines, others 250', () => {
    const linesMax = ({ path }: Page): number => (path === 'README.md' ? 180 : 250);
    const long = pages.filter((page) => page.lines.length > linesMax(page));
    expect(long.map(({ path, lines }) => `${path}: ${lines.length}`)).toEqual([]);
  });

  it('lines have at most 130 characters, but for tables, long links and what is printed', () => {
    const long = pages
      .filter((page) => !isGenerated(page))
      .flatMap(({ path, prose }) =>
        prose
          .filter((line) => line.length > 130 && !line.startsWith('|') && !/\(https?:/.test(line))
          .map((line) => `${path}: ${line.slice(0, 60)}`),
      );
    expect(long).toEqual([]);
  });

  it('begin with a title and whom they are for', () => {
    const others = pages.filter(({ path, lines }) => {
      const [title = '', reader = ''] = lines.filter((line) => line !== '');
      return path !== 'README.md' && !(title.startsWith('# ') && /^For [a-z]/.test(reader));
    });
    expect(others.map(({ path }) => path)).toEqual([]);
  });

  it('have the words of the glossary, not those they replaced', () => {
    const replaced =
      /\b(lanes?|parked|life[- ]seconds|lifeSeconds|mailLifeSeconds|gatherMilliseconds|jobs of all nodes)\b/i;
    const found = pages.flatMap(({ path, lines }) =>
      lines.filter((line) => replaced.test(line)).map((line) => `${path}: ${line}`),
    );
    expect(found).toEqual([]);
  });

  it('have measured figures in benchmarks and evidence alone, where their commands are', () => {
    const ofFigures = ['README.md', 'docs/internals/benchmarks.md', 'docs/internals/evidence.md'];
    const figure = /\d ?µs\b|\d (requests|mails|datapoints|commits) a second (on|of) /;
    const found = pages
      .filter(({ path }) => !ofFigures.includes(path))
      .flatMap(({ path, prose }) =>
        prose.filter((line) => figure.test(line)).map((line) => `${path}: ${line}`),
      );
    expect(found).toEqual([]);
  });
});

describe('commands', () => {
  const program = createWholeProgram();

  /** Lets each command take its words and leave it at that. */
  function doNothing(command: Command): void {
    command.configureOutput({ writeOut: () => {}, outputError: () => {} });
    command.action(() => {});
    for (const child of command.commands) doNothing(child);
  }

  /** Finds the fault in the words after `fleetpost`. */
  function faultOf(words: readonly string[]): string | undefined {
    let command: Command = program;
    let depth = 0;
    for (; command.commands.length > 0 && depth < words.length; depth += 1) {
      const word = words[depth] ?? '';
      const next: Command | undefined = command.commands.find((one) => one.name() === word);
      if (next === undefined) return /^[a-z]/.test(word) ? `no command ${word}` : undefined;
      command = next;
    }
    const flags = new Set(['--help', '--version', ...command.options.flatMap(({ long }) => long ?? [])]);
    const options = words.slice(depth).map((word) => word.replace(/[=,;].*$/, ''));
    const unknown = options.find((word) => /^--[a-z]/.test(word) && !flags.has(word));
    return unknown === undefined ? undefined : `${command.name()} has no ${unknown}`;
  }

  const word = String.raw`(?:'[^']*'|"[^"]*"|[^\s'"|&;()<>#])+`;
  const call = new RegExp(
    String.raw`(?:^[ \t]*(?:\$ )?|[|;&({][ \t]*|\b[A-Z_]+=\S+[ \t]+)(?:fleetpost|node dist/main\.js)((?:[ \t]+${word})+)`,
    'gm',
  );

  /** The words of each call of `fleetpost` in a script, up to the end of its command. */
  function callsIn(script: string): string[][] {
    const text = script
      .replaceAll('\\\n', ' ')
      .replace(/\b(sudo -u|podman exec|docker exec|exec) fleetpost\b/g, ';')
      .replace(/(^|\s)# .*$/gm, '');
    const calls = [...text.matchAll(call)].map(([, words = '']) => words.match(new RegExp(word, 'g')) ?? []);
    return calls.map((words) => words.map((one) => one.replace(/'([^']*)'|"([^"]*)"/g, '$1$2')));
  }

  it('each that a block shows is one that the program takes: its options, their values, its arguments', async () => {
    vi.stubEnv('FLEETPOST_FLEET', 'GARDEN01');
    const trial = createWholeProgram();
    doNothing(trial);
    const faults: string[] = [];
    let count = 0;
    for (const { path, blocks } of pages) {
      const scripts = blocks.filter(({ language }) => ['sh', 'console'].includes(language));
      // All that a function hands on, which is none.
      const calls = scripts.flatMap(({ text }) => callsIn(text)).filter(([first]) => first !== '$@');
      count += calls.length;
      for (const words of calls) {
        const parsed = trial.parseAsync(words, { from: 'user' });
        const code = await parsed.then(
          () => '',
          (error: CommanderError) => error.code,
        );
        const isFault = !['', 'commander.helpDisplayed', 'commander.version'].includes(code);
        if (isFault) faults.push(`${path}: ${words.join(' ')}: ${code}`);
      }
    }
    vi.unstubAllEnvs();
    expect(faults).toEqual([]);
    expect(count).toBeGreaterThan(140);
  });

  it('each that a sentence names exists, with its options', () => {
    const faults = pages
      .filter((page) => !isGenerated(page))
      .flatMap((page) =>
        spansOf(page)
          .filter((span) => span.startsWith('fleetpost '))
          .flatMap((span) => callsIn(span).flatMap((words) => faultOf(words) ?? []))
          .map((fault) => `${page.path}: ${fault}`),
      );
    expect(faults).toEqual([]);
  });

  it('each npm script that is named exists', () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const faults = pages.flatMap(({ path, lines }) =>
      [...lines.join('\n').matchAll(/npm run ([a-z][a-z:-]*)/g)]
        .filter(([, name = '']) => !(name in scripts))
        .map(([text]) => `${path}: ${text}`),
    );
    expect(faults).toEqual([]);
  });

  it('each test that a command names is there', () => {
    const tests = filesBelow('test', '.test.ts');
    const named = /(?:npm run test:(?:all|postgres) --|--project \S+)[ \n]+((?:[a-z][\w/.-]*[ \n]?)+)/g;
    const faults = pages.flatMap(({ path, lines }) =>
      [...lines.join('\n').matchAll(named)]
        .flatMap(([, words = '']) => words.trim().split(/\s/))
        .filter((word) => !tests.some((test) => test.includes(word)))
        .map((word) => `${path}: ${word}`),
    );
    expect(faults).toEqual([]);
  });

  it('blocks say what they are: a language, sh for what is run, console for what is shown', () => {
    const known = [
      'sh',
      'console',
      'text',
      'json',
      'ts',
      'js',
      'python',
      'ini',
      'nginx',
      'haproxy',
      'yaml',
      'sql',
    ];
    const others = pages.flatMap(({ path, blocks }) =>
      blocks
        .filter(({ language }) => !known.includes(language))
        .map(({ text }) => `${path}: ${text.slice(0, 40)}`),
    );
    expect(others).toEqual([]);
  });
});

describe('configuration', () => {
  const keys: ReadonlySet<string> = new Set(configKeys);
  const endings =
    /^[a-z]+(?:[A-Z][a-z]+)*(Max|Min|Seconds|Milliseconds|Bytes|Hosts|Threads|Token|File|Url|Kept|Level|Statuses)$/;
  /** Ends like a key, and is none. */
  const others = ['idleTimeoutSeconds'];
  /** Variable of packaging/container, not of the server. */
  const ofCompose = 'FLEETPOST_HOST';
  /** Name what is not configured at the server: rules of the code, options of a client. */
  const ofOthers = ['CONTRIBUTING.md', 'docs/devices/typescript.md'];

  it('each key that is named exists', () => {
    const unknown = pages
      .filter(({ path }) => !ofOthers.includes(path))
      .flatMap((page) =>
        spansOf(page)
          .filter((span) => endings.test(span) && /[A-Z]/.test(span))
          .filter((span) => !keys.has(span) && !others.includes(span))
          .map((span) => `${page.path}: ${span}`),
      );
    expect(unknown).toEqual([]);
  });

  it('each environment variable that is named exists', () => {
    const variables = new Set<string>(configKeys.map((key) => environmentName(key)));
    const unknown = pages.flatMap(({ path, lines }) =>
      [...lines.join('\n').matchAll(/\bFLEETPOST_[A-Z_]+\b/g)]
        .map(([name]) => name)
        .filter((name) => !variables.has(name) && !isClientVariable(name, 'x') && name !== ofCompose)
        .map((name) => `${path}: ${name}`),
    );
    expect(unknown).toEqual([]);
  });

  it('each limit that an error names is found in troubleshooting', () => {
    const named = new Set<ConfigKey>();
    const isLimit = (word: string): word is ConfigKey =>
      keys.has(word) && /(Max|Min|Seconds|Milliseconds)$/.test(word);
    for (const file of filesBelow('src', '.ts').filter((path) => basename(path) !== 'config.ts')) {
      const text = readFileSync(join(root, file), 'utf8');
      for (const [sentence] of text.matchAll(/(['`])(?:(?!\1)[^\n])* (?:(?!\1)[^\n])*\1/g)) {
        for (const [, list = ''] of sentence.matchAll(/\(([A-Za-z, ]+)\)/g)) {
          for (const word of list.split(', ')) if (isLimit(word)) named.add(word);
        }
      }
    }
    expect(named.size).toBeGreaterThan(20);
    const explained = new Set(spansOf(pageAt('docs/run/troubleshooting.md')));
    expect([...named].filter((key) => !explained.has(key)).sort()).toEqual([]);
  });
});

describe('what the code knows', () => {
  /** The rows of the table that begins with this heading, on whichever page, as cells. */
  function table(heading: string): string[][] {
    const text = pages.filter((page) => !isGenerated(page)).flatMap(({ lines }) => lines);
    const start = text.findIndex((line) => line.startsWith(`| ${heading} |`));
    expect(start, `no table "${heading}"`).toBeGreaterThan(0);
    const rows = text.slice(start + 2);
    const end = rows.findIndex((line) => !line.startsWith('|'));
    const cellsOf = (line: string): string[] => line.split('|').slice(1, -1);
    return rows.slice(0, end).map((line) => cellsOf(line).map((cell) => cell.trim()));
  }

  it('the device API table is the routes', () => {
    const documented = table('Request').map(([request]) => request?.replaceAll('`', ''));
    expect(documented.sort()).toEqual(routeNames.filter((name) => name !== 'unknown').sort());
  });

  it('the table of what a run can end with is what it can', () => {
    const codes = table('Error of a run').flatMap(([cell]) => cell?.match(/\w+/g) ?? []);
    expect(codes.sort()).toEqual([...runErrorCode.enum].sort());
  });

  it('what can be wrong with credentials is in the HTTP API and in its decision, in the same order', () => {
    const listIn = (path: string, start: string): string[] => {
      const text = pageAt(path).prose.join('\n');
      const [paragraph = ''] = text.slice(text.indexOf(start)).split('\n\n');
      return (paragraph.match(/`[a-z_]+`/g) ?? []).map((span) => span.slice(1, -1));
    };
    const stated = (name: string): boolean => !['detail', 'error', 'msg'].includes(name);
    expect(listIn('docs/devices/http-api.md', '`detail` with 400').filter(stated)).toEqual(credentialDetails);
    expect(listIn('docs/internals/decisions.md', '**D4.').filter(stated)).toEqual(credentialDetails);
  });

  it('the fields of a device in an import are those that are kept, and in its page and in the console', () => {
    const fields = Object.keys(deviceLine.properties).sort();
    expect(fields).toEqual(expect.arrayContaining(Object.keys(descriptionFields)));
    const documented = table('Field of a device').flatMap(([cell]) => cell?.match(/\w+/g) ?? []);
    expect(documented.filter((word) => word !== 'or').sort()).toEqual(fields);
    expect((importedMembers.match(/\w+/g) ?? []).filter((word) => word !== 'or').sort()).toEqual(fields);
  });

  it('pages that say where forwarders send to name every kind', () => {
    const [first] = anyDestination.split(/,| or /);
    const lists = pages.flatMap(({ path, prose }) =>
      [...prose.join(' ').matchAll(new RegExp(`\\b${first}(,| or ).{40}`, 'g'))].map(
        ([text]) => `${path}: ${text}`,
      ),
    );
    for (const path of ['docs/start/concepts.md', 'docs/operate/records.md', 'docs/internals/glossary.md']) {
      expect(lists.some((one) => one.startsWith(path))).toBe(true);
    }
    expect(lists.filter((one) => !one.includes(`: ${anyDestination}`))).toEqual([]);
    const guide = pageAt('docs/operate/records.md').lines.join('\n');
    const kinds: readonly string[] = forwarderDocument.properties.type.enum;
    expect(kinds.filter((kind) => !guide.includes(`forwarder put`) || !guide.includes(`--${kind} `))).toEqual(
      [],
    );
  });

  it('each decision that code, tests or pages cite is stated', () => {
    const stated = new Set(
      pageAt('docs/internals/decisions.md').prose.flatMap((line) => /^\*\*(D\d+)\b/.exec(line)?.[1] ?? []),
    );
    const files = [
      ...filesBelow('src', '.ts'),
      ...filesBelow('test', '.ts'),
      ...pages.map(({ path }) => path),
    ];
    const cited = files.flatMap((file) =>
      [...readFileSync(join(root, file), 'utf8').matchAll(/(?<![\w-])D([1-9]\d?)(?![\w-])/g)].map(
        ([name]) => name,
      ),
    );
    expect([...new Set(cited)].filter((name) => !stated.has(name))).toEqual([]);
  });

  it('the pages for those who change it name files that are there', () => {
    const missing = pages.filter(isInternal).flatMap((page) =>
      spansOf(page)
        .filter((span) => /^[a-z-]+(\/[\w-]+)+\.(ts|sh)$|^(src|test|bench|packaging)\//.test(span))
        .filter((span) => !existsSync(join(root, span)) && !existsSync(join(root, 'src', span)))
        .map((span) => `${page.path}: ${span}`),
    );
    expect(missing).toEqual([]);
  });
});

it('watching.md has every alert, and no other', () => {
  const named = pageAt('docs/run/watching.md')
    .prose.join('\n')
    .match(/`Fleetpost[A-Z][A-Za-z]+`/g);
  expect(named).toEqual(alerts.map(({ name }) => `\`${name}\``));
});
