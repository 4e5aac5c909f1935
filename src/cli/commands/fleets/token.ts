import { type Command, InvalidArgumentError } from 'commander';
import { pathTo } from '../../../contract/routes/path.ts';
import { type Scope, scopes } from '../../../core/scope.ts';
import { type ConnectionOptions, connect } from '../../connection.ts';
import { moment } from '../../moment.ts';
import { clientCommand, type ListOptions, withListOptions } from '../../options.ts';
import { fields, listText, print } from '../../output.ts';

const path = pathTo('/tokens', {});

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
      const token = await connect(options).request('POST', path, { json });
      print(options, token, fields(token));
    });

  withListOptions(clientCommand(group, 'list', 'list the API tokens and the sessions of the console')).action(
    async (options: ConnectionOptions & ListOptions) => {
      const tokens = await connect(options).list(path, options);
      const columns = [
        'token_id',
        'kind',
        'name',
        'scopes',
        'fleet_id',
        'expires_at',
        'expired',
        'last_used_at',
      ] as const;
      print(options, tokens, listText(tokens, columns, 'There are no API tokens.'));
    },
  );

  clientCommand(group, 'revoke <token_id>', 'revoke an API token with its sessions, or a session').action(
    async (id: string, options: ConnectionOptions) => {
      await connect(options).request('DELETE', pathTo('/tokens/{token_id}', { token_id: id }));
      print(options, { ok: true }, 'The token is revoked.');
    },
  );
}
