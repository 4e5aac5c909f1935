import type { Command } from 'commander';
import type { CreatedClaimTokenDocument } from '../../../contract/access/token.ts';
import { claimTokenColumns } from '../../../contract/columns/access.ts';
import { moment } from '../../moment.ts';
import { integerOption, option, several } from '../../options.ts';
import { fields } from '../../output.ts';
import { listCommand, requestCommand } from '../declared.ts';

const claimTokens = '/fleets/{fleet_id}/claim-tokens';

function createdText({ claiming, ...token }: CreatedClaimTokenDocument): string {
  const text = fields({ ...token, expires_at: token.expires_at ?? 'never (see --expires)' });
  if (claiming) return text;
  return `${text}\n\nClaiming is off, so devices get 404: set "claiming": true in the configuration, and reload it.`;
}

/** `claim-token create|list|revoke`. */
export function addClaimTokenCommands(program: Command): void {
  const group = program
    .command('claim-token')
    .description('manage claim tokens, with which devices register themselves (claiming must be enabled)');

  requestCommand(group, 'POST', claimTokens, {
    usage: 'create',
    does: 'create a claim token; its text is shown only once',
    body: {
      devices_max: option(
        '--devices <n>',
        'maximum number of devices',
        integerOption(1, 100_000_000),
      ).makeOptionMandatory(),
      name: option('--name <text>', 'a name for people'),
      expires_at: option(
        '--expires <when>',
        'expiry: a time, or a duration like 90d; default: never',
        moment('ahead'),
      ),
      id_pattern: option(
        '--id-pattern <re2>',
        'pattern that device ids must match; devices must then send their id',
      ),
      tags: option('--tag <tag>', 'tag for the devices; repeatable', several),
    },
    done: createdText,
  });

  listCommand(group, claimTokens, {
    does: 'list the claim tokens of a fleet',
    columns: claimTokenColumns,
    empty: 'This fleet has no claim tokens.',
  });

  requestCommand(group, 'DELETE', `${claimTokens}/{claim_token_id}`, {
    usage: 'revoke <claim_token_id>',
    does: 'revoke a claim token',
    done: 'The claim token is revoked.',
  });
}
