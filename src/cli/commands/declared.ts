import type { Command, Option } from 'commander';
import type { ListColumns } from '../../contract/columns/column.ts';
import type { ListDocument } from '../../contract/document.ts';
import {
  type AnswerAt,
  type BodyAt,
  type ItemAt,
  type MethodOf,
  type Path,
  pathTo,
  type QueryAt,
  type Template,
} from '../../contract/routes/path.ts';
import { type ConnectionOptions, connect } from '../connection.ts';
import { clientCommand, fleetCommand, type ListOptions, withListOptions } from '../options.ts';
import { fields, listText, print } from '../output.ts';

/** Name and arguments of a command, and what it does. */
type Usage = readonly [nameAndArguments: string, description: string];

/** Adds a command on what is at a path; `--fleet` is the fleet in it. */
function commandAt(group: Command, [nameAndArguments, description]: Usage, template: Template): Command {
  const add = template.startsWith('/fleets/{fleet_id}') ? fleetCommand : clientCommand;
  return add(group, nameAndArguments, description);
}

/** The path of a command that was run: the fleet and the device are options, the rest are its arguments in order. */
function pathOf<T extends Template>(template: T, command: Command): Path<T> {
  const { fleet: fleet_id, device: device_id }: { fleet?: string; device?: string } = command.opts();
  const values: Record<string, string | number> = {
    ...(fleet_id !== undefined && { fleet_id }),
    ...(device_id !== undefined && { device_id }),
  };
  const names = [...template.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  for (const [index, name] of names.filter((one) => !(one in values)).entries())
    values[name] = command.processedArgs[index];
  return pathTo(template, values as Parameters<typeof pathTo<T>>[1]);
}

export interface RequestDeclaration<M extends MethodOf<T>, T extends Template> {
  json?: BodyAt<M, T>;
  /** Says what was done; without it the fields of the answer are printed. */
  text?(answer: AnswerAt<M, T>): string;
}

/** Adds a command that is one request; an answer without a document is `{ok: true}`. */
export function requestCommand<T extends Template, M extends MethodOf<T>>(
  group: Command,
  usage: Usage,
  method: M,
  template: T,
  { json, text = (answer) => fields(answer as object) }: RequestDeclaration<M, T> = {},
): Command {
  const command = commandAt(group, usage, template);
  return command.action(async () => {
    const options: ConnectionOptions = command.opts();
    const parts = { ...(json !== undefined && { json }) };
    const answer = await connect(options).request(method, pathOf(template, command), parts);
    print(options, answer ?? { ok: true }, text(answer));
  });
}

/** The options that filter a list, each by the parameter of the query that it sets. */
export type Filter<Query> = { readonly [Name in keyof Query]?: Option };

export function withFilter<Query>(command: Command, filter: Filter<Query>): Command {
  for (const option of Object.values<Option | undefined>(filter)) if (option) command.addOption(option);
  return command;
}

/** The query of the options that were given. */
export function filterOf<Query>(filter: Filter<Query>, options: object): Query {
  const given = options as Readonly<Record<string, unknown>>;
  const query = Object.entries<Option | undefined>(filter).map(
    ([name, option]) => [name, option && given[option.attributeName()]] as const,
  );
  return Object.fromEntries(query.filter(([, value]) => value !== undefined)) as Query;
}

export interface ListDeclaration<T extends Template> {
  columns: ListColumns<ItemAt<T>>;
  /** Said of a list without items. */
  empty: string;
  filter?: Filter<QueryAt<'GET', T>>;
  /** The query of the options, if some are more than a parameter. */
  queryOf?(options: object): QueryAt<'GET', T>;
  /** True if it is one page by its nature. */
  isWhole?: boolean;
}

/** Adds a command that lists what is at a path. */
export function listCommand<T extends Template>(
  group: Command,
  usage: Usage,
  template: T,
  declaration: ListDeclaration<T>,
): Command {
  const { columns, empty, filter = {}, isWhole = false } = declaration;
  const { queryOf = (options) => filterOf(filter, options) } = declaration;
  const command = withFilter(commandAt(group, usage, template), filter);
  if (!isWhole) withListOptions(command);
  return command.action(async () => {
    const options: ConnectionOptions & ListOptions = command.opts();
    const client = connect(options);
    const path = pathOf(template, command);
    const list: ListDocument<ItemAt<T>> = isWhole
      ? JSON.parse(await client.requestText('GET', path))
      : await client.list(path, options, queryOf(options));
    print(options, list, listText(list, columns, empty));
  });
}

type PausablePath = '/fleets/{fleet_id}/consumers/{name}' | '/fleets/{fleet_id}/forwarders/{name}';

/** Adds `pause|resume` of a reader of records; `meanwhile` says what holds while it is paused. */
export function addPauseCommands(
  group: Command,
  path: PausablePath,
  { of, meanwhile }: { of: string; meanwhile: string },
): void {
  const text = ({ name, enabled }: { name: string; enabled: boolean }): string =>
    `${name} is ${enabled ? 'resumed' : 'paused'}.`;
  for (const [usage, enabled] of [
    [['pause <name>', `pause ${of}; ${meanwhile}`], false],
    [['resume <name>', `resume ${of}`], true],
  ] as const)
    requestCommand(group, usage, 'PATCH', path, { json: { enabled }, text });
}
