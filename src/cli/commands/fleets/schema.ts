import { Argument, type Command } from 'commander';
import { schemaColumns } from '../../../contract/columns/fleet.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import type { SchemaCheckDocument, SchemaDocument } from '../../../contract/schema.ts';
import { OperatorError } from '../../../core/errors.ts';
import { connect } from '../../connection.ts';
import { readInput } from '../../input.ts';
import { type FleetOptions, fleetCommand } from '../../options.ts';
import { print, printable, printRaw } from '../../output.ts';
import { listCommand, requestCommand } from '../declared.ts';

/** Adds the arguments that name a schema. */
function withSchemaName(command: Command): Command {
  return command
    .addArgument(new Argument('<kind>').choices(['datapoint', 'message', 'mail', 'reply']))
    .argument('<name>');
}

/** Adds a command on one schema, by kind and name. */
function schemaCommand(group: Command, verb: string, description: string): Command {
  return withSchemaName(fleetCommand(group, verb, description));
}

function schemaPath({ fleet: fleet_id }: FleetOptions, kind: string, name: string) {
  return pathTo('/fleets/{fleet_id}/schemas/{kind}/{name}', { fleet_id, kind, name });
}

async function textOf(file: string): Promise<string> {
  return (await readInput(file)).toString('utf8');
}

/** Checks a stored schema or that of a file, and a sample against it; neither is stored. */
async function trySample(
  kind: SchemaDocument['kind'],
  name: string,
  sampleFile: string | undefined,
  options: FleetOptions & { file?: string },
): Promise<void> {
  if (sampleFile === undefined && options.file === undefined) {
    throw new OperatorError('Name a sample, a schema by --file, or both.');
  }
  const json = {
    kind,
    ...(options.file === undefined ? { name } : { schema: await textOf(options.file) }),
    ...(sampleFile !== undefined && { sample: await textOf(sampleFile) }),
  };
  const path = pathTo('/fleets/{fleet_id}/schemas:check', { fleet_id: options.fleet });
  const check = await connect(options).request('POST', path, { json });
  if (check.fault !== null || check.sample?.matches === false) process.exitCode = 1;
  print(options, check, checkText(check));
}

function checkText({ fault, steps, steps_at, steps_max, sample }: SchemaCheckDocument): string {
  if (fault !== null) return printable(fault);
  const place = steps_at ? `, at ${steps_at}` : '';
  const cost = `Checking one value takes at most ${steps} of ${steps_max} steps${place}.`;
  if (sample === null) return printable(cost);
  if (sample.matches) return ['The sample matches.', cost].map(printable).join('\n');
  const errors = sample.errors.map(({ path, msg }) => `${path || '/'}: ${msg}`);
  return [`The sample is refused: ${sample.msg}`, ...errors, cost].map(printable).join('\n');
}

/** `schema put|try|list|show|delete`. */
export function addSchemaCommands(program: Command): void {
  const group = program
    .command('schema')
    .description("manage a fleet's JSON Schemas of datapoints, messages and mail");

  schemaCommand(group, 'put', 'store a JSON Schema')
    .argument('<file>', '- is standard input')
    .action(async (kind: string, name: string, file: string, options: FleetOptions) => {
      const bytes = await readInput(file);
      const schema = await connect(options).request('PUT', schemaPath(options, kind, name), {
        bytes,
      });
      print(options, schema, `The ${schema.kind} schema ${schema.name} is stored.`);
    });

  schemaCommand(group, 'try', 'hold a sample against a schema, and say what it costs; nothing is stored')
    .argument('[sample]', 'a JSON file; - is standard input')
    .option('--file <file>', 'try this JSON Schema instead of the stored one')
    .action(trySample);

  listCommand(group, '/fleets/{fleet_id}/schemas', {
    does: 'list the schemas of a fleet, and why one is disabled',
    columns: schemaColumns,
    empty: 'This fleet has no schemas.',
    isWhole: true,
  });

  schemaCommand(group, 'show', 'print a schema as it was stored').action(
    async (kind: string, name: string, options: FleetOptions) => {
      const text = await connect(options).requestText('GET', schemaPath(options, kind, name));
      printRaw(options, text.replace(/\n$/, ''));
    },
  );

  withSchemaName(
    requestCommand(group, 'DELETE', '/fleets/{fleet_id}/schemas/{kind}/{name}', {
      usage: 'delete',
      does: 'delete a schema',
      done: 'The schema is deleted.',
    }),
  );
}
