import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { fleetVariable, isAdminUrl } from '../../../core/config/client-variables.ts';
import { OperatorError } from '../../../core/errors.ts';
import { checkToken } from '../../connection.ts';
import { type Context, contextNamed, contextsFile, readContexts, writeContexts } from '../../contexts.ts';
import { readInput } from '../../input.ts';
import { fleetIdOption } from '../../options.ts';
import { listText, print } from '../../output.ts';

const contextsMax = 100;

interface AddOptions {
  address: string;
  ca?: string;
  token?: string;
  fleet?: string;
  json?: boolean;
}

function addressOption(text: string): string {
  if (isAdminUrl(text) && URL.canParse(text)) return text;
  throw new InvalidArgumentError('It must be a URL, like https://fleetpost.example:8444.');
}

/** Checks that the file can be read now, not only by the next command. @throws OperatorError */
function authorityAt(file: string, address: string): string {
  if (!address.startsWith('https:')) throw new OperatorError('--ca goes with an address in https.');
  const path = resolve(file);
  try {
    if (readFileSync(path, 'utf8').includes('-----BEGIN CERTIFICATE-----')) return path;
  } catch (error) {
    throw new OperatorError(`${file} cannot be read: ${(error as Error).message}.`);
  }
  throw new OperatorError(`${file} holds no certificate in PEM.`);
}

async function add(name: string, { address, ca, token, fleet, json = false }: AddOptions): Promise<void> {
  if (!/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/.test(name)) {
    throw new OperatorError(
      'A name is 1 to 64 letters, digits, _, - or ., and begins with a letter or digit.',
    );
  }
  const known = readContexts();
  if (Object.hasOwn(known.contexts, name)) {
    throw new OperatorError(`There is a context ${name} already. Remove it first.`);
  }
  if (Object.keys(known.contexts).length >= contextsMax) {
    throw new OperatorError(`There are ${contextsMax} contexts, which is the maximum. Remove one first.`);
  }
  const text = token === '-' ? (await readInput('-')).toString('utf8').trim() : token;
  if (text !== undefined) checkToken(text);
  const context: Context = {
    address,
    ...(ca !== undefined && { ca: authorityAt(ca, address) }),
    ...(text !== undefined && { token: text }),
    ...(fleet !== undefined && { fleet }),
  };
  writeContexts({ ...known, contexts: { ...known.contexts, [name]: context } });
  const next = `Use it with "fleetpost context use ${name}", or --context ${name}.`;
  print({ json }, { name, file: contextsFile() }, `The context ${name} is added. ${next}`);
}

const columns = ['name', 'current', 'address', 'fleet', 'ca', 'has_token'] as const;

function list({ json = false }: { json?: boolean }): void {
  const { current, contexts } = readContexts();
  // Without their tokens, which are secrets.
  const items = Object.entries(contexts).map(([name, { address, ca = null, token, fleet = null }]) => ({
    name,
    current: name === current,
    address,
    fleet,
    ca,
    has_token: token !== undefined,
  }));
  const rows = items.map((item) => ({ ...item, current: item.current ? 'yes' : '' }));
  print(
    { json },
    { items, next: null },
    listText(
      { items: rows, next: null },
      columns.map((name) => ({ name })),
      'There are no contexts.',
    ),
  );
}

/** `context add|use|list|remove`. */
export function addContextCommands(program: Command): void {
  const group = program
    .command('context')
    .description('remember servers: address, certificates to trust, token, fleet');

  group
    .command('add <name>')
    .description('add a context to fleetpost/contexts.json in the configuration folder of the user')
    .requiredOption('--address <url>', 'URL of the admin API', addressOption)
    .option('--ca <file>', 'certificates to trust instead of the usual ones, PEM')
    .option('--token <token>', 'API token; - reads it from standard input')
    .option('--fleet <id>', `default of --fleet, unless ${fleetVariable} is set`, fleetIdOption)
    .option('--json', 'print one JSON document')
    .action(add);

  group
    .command('use <name>')
    .description('use a context for the commands that name no server')
    .option('--json', 'print one JSON document')
    .action((name: string, options: { json?: boolean }) => {
      const known = readContexts();
      const { address } = contextNamed(name, known);
      writeContexts({ ...known, current: name });
      print(options, { name, address }, `Commands now go to ${address}.`);
    });

  group
    .command('list')
    .description('list the contexts, without their tokens')
    .option('--json', 'print one JSON document')
    .action(list);

  group
    .command('remove <name>')
    .description('remove a context with its token')
    .option('--json', 'print one JSON document')
    .action((name: string, options: { json?: boolean }) => {
      const known = readContexts();
      contextNamed(name, known);
      const { [name]: _, ...contexts } = known.contexts;
      const isCurrent = known.current === name;
      writeContexts({
        ...(!isCurrent && known.current !== undefined && { current: known.current }),
        contexts,
      });
      const after = isCurrent ? ' None is in use now.' : '';
      print(options, { ok: true }, `The context ${name} is removed.${after}`);
    });
}
