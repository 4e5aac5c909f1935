import { type Command, InvalidArgumentError } from 'commander';
import { tokenColumns } from '../../../contract/columns/access.ts';
import { type Scope, scopes } from '../../../core/scope.ts';
import { moment } from '../../moment.ts';
import { option } from '../../options.ts';
import { listCommand, requestCommand } from '../declared.ts';

function parseScopes(text: string, before: readonly Scope[] = []): Scope[] {
  const named = [...new Set([...before, ...text.split(',')])];
  const unknown = named.find((name) => !(scopes as readonly string[]).includes(name));
  if (unknown === undefined) return named as Scope[];
  throw new InvalidArgumentError(`It must be some of ${scopes.join(',')}.`);
}

/** `token create|list|revoke`. */
export function addTokenCommands(program: Command): void {
  const group = program.command('token').description('manage API tokens for the admin API');

  requestCommand(group, 'POST', '/tokens', {
    usage: 'create',
    does: 'create an API token; its text is shown only once',
    body: {
      name: option('--name <text>', 'who or what uses it').makeOptionMandatory(),
      scopes: option('--scopes <list>', `some of ${scopes.join(',')}`, parseScopes).makeOptionMandatory(),
      fleet_id: option('--fleet <id>', 'restrict it to this fleet'),
      expires_at: option(
        '--expires <when>',
        'expiry: a time, or a duration like 90d; default: never',
        moment('ahead'),
      ),
    },
  });

  listCommand(group, '/tokens', {
    does: 'list the API tokens and the sessions of the console',
    columns: tokenColumns,
    empty: 'There are no API tokens.',
  });

  requestCommand(group, 'DELETE', '/tokens/{token_id}', {
    usage: 'revoke <token_id>',
    does: 'revoke an API token with its sessions, or a session',
    done: 'The token is revoked.',
  });
}
