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
import { OperatorError } from '../../core/errors.ts';
import { type ConnectionOptions, connect } from '../connection.ts';
import { clientCommand, fleetCommand, type ListOptions, withListOptions } from '../options.ts';
import { fields, listText, print, printAnswer } from '../output.ts';

/** Adds a command on what is at a path; `--fleet` is the fleet in it. */
function commandAt(group: Command, template: Template, usage: string, does: string): Command {
  const add = template.startsWith('/fleets/{fleet_id}') ? fleetCommand : clientCommand;
  return add(group, usage, does);
}

/**
 * The path of a command that was run: its arguments in their order, but for the fleet, which is an option, and the device
 * where it is one.
 */
function pathOf<T extends Template>(template: T, command: Command): Path<T> {
  const { fleet: fleet_id, device: device_id }: { fleet?: string; device?: string } = command.opts();
  const isDeviceNamed = command.registeredArguments[0]?.name() === 'device_id';
  const names = [...template.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  const named = names.filter((name) => name !== 'fleet_id' && (name !== 'device_id' || isDeviceNamed));
  const values: Record<string, string | number | undefined> = { fleet_id, device_id };
  for (const [index, name] of named.entries()) values[name] = command.processedArgs[index] ?? values[name];
  if (names.includes('device_id') && values.device_id === undefined)
    throw new OperatorError('Give the device: its id, or --device ID.');
  return pathTo(template, values as Parameters<typeof pathTo<T>>[1]);
}

/** Options of a command, each by the member of the query or the body that it sets. */
export type OptionsOf<Document> = { readonly [Name in keyof Document]?: Option };

export function withOptions<Document>(command: Command, options: OptionsOf<Document>): Command {
  for (const one of Object.values<Option | undefined>(options)) if (one) command.addOption(one);
  return command;
}

/** The members whose options were given, or have a default. */
export function valuesOf<Document>(options: OptionsOf<Document>, given: object): Document {
  const values = given as Readonly<Record<string, unknown>>;
  const members = Object.entries<Option | undefined>(options).map(
    ([name, one]) => [name, one && values[one.attributeName()]] as const,
  );
  return Object.fromEntries(members.filter(([, value]) => value !== undefined)) as Document;
}

export interface RequestDeclaration<M extends MethodOf<T>, T extends Template> {
  /** Name of the command, and its arguments. */
  usage: string;
  does: string;
  /** Members of the body that are always the same. */
  json?: Partial<BodyAt<M, T>>;
  /** The others. */
  body?: OptionsOf<BodyAt<M, T>>;
  /** Says what was done, or how the answer is shown: by its fields unless this says otherwise. */
  done?: string | ((answer: AnswerAt<M, T>) => string);
}

/** Adds a command that is one request; an answer without a document is `{ok: true}`. */
export function requestCommand<T extends Template, M extends MethodOf<T>>(
  group: Command,
  method: M,
  template: T,
  { usage, does, json, body, done = (answer) => fields(answer as object) }: RequestDeclaration<M, T>,
): Command {
  const command = withOptions(commandAt(group, template, usage, does), body ?? {});
  return command.action(async () => {
    const options: ConnectionOptions = command.opts();
    const document = { ...(json as object | undefined), ...valuesOf<object>(body ?? {}, options) };
    const parts = json === undefined && body === undefined ? {} : { json: document };
    const text = await connect(options).requestText(method, pathOf(template, command), parts);
    printAnswer(options, text || '{"ok":true}', () =>
      typeof done === 'string' ? done : done((text === '' ? undefined : JSON.parse(text)) as AnswerAt<M, T>),
    );
  });
}

export interface ListDeclaration<T extends Template> {
  /** Name of the command, and its arguments: `list` by default. */
  usage?: string;
  does: string;
  columns: ListColumns<ItemAt<T>>;
  /** Said of a list without items. */
  empty: string;
  filter?: OptionsOf<QueryAt<'GET', T>>;
  /** The query of the options, if some are more than a parameter. */
  queryOf?(options: object): QueryAt<'GET', T>;
  /** True if it is one page by its nature. */
  isWhole?: boolean;
}

/** Adds a command that lists what is at a path. */
export function listCommand<T extends Template>(
  group: Command,
  template: T,
  declaration: ListDeclaration<T>,
): Command {
  const { usage = 'list', does, columns, empty, filter = {}, isWhole = false } = declaration;
  const { queryOf = (options) => valuesOf(filter, options) } = declaration;
  const command = withOptions(commandAt(group, template, usage, does), filter);
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
  const done = ({ name, enabled }: { name: string; enabled: boolean }): string =>
    `${name} is ${enabled ? 'resumed' : 'paused'}.`;
  for (const [usage, does, enabled] of [
    ['pause <name>', `pause ${of}; ${meanwhile}`, false],
    ['resume <name>', `resume ${of}`, true],
  ] as const)
    requestCommand(group, 'PATCH', path, { usage, does, json: { enabled }, done });
}
