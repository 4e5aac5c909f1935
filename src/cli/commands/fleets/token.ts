import { type Command, InvalidArgumentError } from 'commander';
import { tokenColumns } from '../../../contract/columns/access.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { type Scope, scopes } from '../../../core/scope.ts';
import { type ConnectionOptions, connect } from '../../connection.ts';
import { moment } from '../../moment.ts';
import { clientCommand } from '../../options.ts';
import { fields, print } from '../../output.ts';
import { listCommand, requestCommand } from '../declared.ts';

interface CreateOptions extends ConnectionOptions {
  name: string;
  scopes: Scope[];
  fleet?: string;
  expires?: string;
}

function parseScopes(text: string, before: readonly Scope[] = []): Scope[] {
  const named = [...new Set([...before, ...text.split(',')])];
  const unknown = named.find((name) => !(scopes as readonly string[]).includes(name));
  if (unknown === undefined) return named as Scope[];
  throw new InvalidArgumentError(`It must be some of ${scopes.join(',')}.`);
}

/** `token create|list|revoke`. */
export function addTokenCommands(program: Command): void {
  const group = program.command('token').description('manage API tokens for the admin API');

  clientCommand(group, 'create', 'create an API token; its text is shown only once')
    .requiredOption('--name <text>', 'who or what uses it')
    .requiredOption('--scopes <list>', `some of ${scopes.join(',')}`, parseScopes)
    .option('--fleet <id>', 'restrict it to this fleet')
    .option('--expires <when>', 'expiry: a time, or a duration like 90d; default: never', moment('ahead'))
    .action(async ({ name, scopes, fleet, expires, ...options }: CreateOptions) => {
      const json = { name, scopes, fleet_id: fleet, expires_at: expires };
      const token = await connect(options).request('POST', pathTo('/tokens', {}), { json });
      print(options, token, fields(token));
    });

  listCommand(group, ['list', 'list the API tokens and the sessions of the console'], '/tokens', {
    columns: tokenColumns,
    empty: 'There are no API tokens.',
  });

  requestCommand(
    group,
    ['revoke <token_id>', 'revoke an API token with its sessions, or a session'],
    'DELETE',
    '/tokens/{token_id}',
    { text: () => 'The token is revoked.' },
  );
}
