import { Argument, type Command } from 'commander';
import type { ListDocument } from '../../../contract/document.ts';
import type { SchemaDocument } from '../../../contract/schema.ts';
import { pathOf } from '../../admin-client.ts';
import { connect } from '../../connection.ts';
import { readInput } from '../../input.ts';
import { type FleetOptions, fleetCommand } from '../../options.ts';
import { listText, print, printRaw } from '../../output.ts';

/** Adds a command on one schema, by kind and name. */
function schemaCommand(group: Command, verb: string, description: string): Command {
  return fleetCommand(group, verb, description)
    .addArgument(new Argument('<kind>').choices(['datapoint', 'message', 'mail']))
    .argument('<name>');
}

function pathTo({ fleet }: FleetOptions, kind: string, name: string): string {
  return pathOf('fleets', fleet, 'schemas', kind, name);
}

/** `schema put|list|show|delete`. */
export function addSchemaCommands(program: Command): void {
  const group = program
    .command('schema')
    .description("manage a fleet's JSON Schemas of datapoints, messages and mail");

  schemaCommand(group, 'put', 'store a JSON Schema')
    .argument('<file>', '- is standard input')
    .action(async (kind: string, name: string, file: string, options: FleetOptions) => {
      const bytes = await readInput(file);
      const schema = await connect(options).request<SchemaDocument>('PUT', pathTo(options, kind, name), {
        bytes,
      });
      print(options, schema, `The ${schema.kind} schema ${schema.name} is stored.`);
    });

  fleetCommand(group, 'list', 'list the schemas of a fleet, and why one is disabled').action(
    async (options: FleetOptions) => {
      const schemas = await connect(options).request<ListDocument<SchemaDocument>>(
        'GET',
        pathOf('fleets', options.fleet, 'schemas'),
      );
      print(options, schemas, listText(schemas, ['kind', 'name', 'disabled'], 'This fleet has no schemas.'));
    },
  );

  schemaCommand(group, 'show', 'print a schema as it was stored').action(
    async (kind: string, name: string, options: FleetOptions) => {
      const text = await connect(options).requestText('GET', pathTo(options, kind, name));
      printRaw(options, text.replace(/\n$/, ''));
    },
  );

  schemaCommand(group, 'delete', 'delete a schema').action(
    async (kind: string, name: string, options: FleetOptions) => {
      await connect(options).request('DELETE', pathTo(options, kind, name));
      print(options, { ok: true }, 'The schema is deleted.');
    },
  );
}
