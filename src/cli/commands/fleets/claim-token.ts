import type { Command } from 'commander';
import { claimTokenColumns } from '../../../contract/columns/access.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { connect } from '../../connection.ts';
import { moment } from '../../moment.ts';
import { type FleetOptions, fleetCommand, integerOption, several } from '../../options.ts';
import { fields, print } from '../../output.ts';
import { listCommand, requestCommand } from '../declared.ts';

interface CreateOptions extends FleetOptions {
  devices: number;
  name?: string;
  expires?: string;
  idPattern?: string;
  tag?: string[];
}

const claimTokens = '/fleets/{fleet_id}/claim-tokens';

/** `claim-token create|list|revoke`. */
export function addClaimTokenCommands(program: Command): void {
  const group = program
    .command('claim-token')
    .description('manage claim tokens, with which devices register themselves (claiming must be enabled)');

  fleetCommand(group, 'create', 'create a claim token; its text is shown only once')
    .requiredOption('--devices <n>', 'maximum number of devices', integerOption(1, 100_000_000))
    .option('--name <text>', 'a name for people')
    .option('--expires <when>', 'expiry: a time, or a duration like 90d; default: never', moment('ahead'))
    .option('--id-pattern <re2>', 'pattern that device ids must match; devices must then send their id')
    .option('--tag <tag>', 'tag for the devices; repeatable', several)
    .action(async ({ devices, name, expires, idPattern, tag, ...options }: CreateOptions) => {
      const json = { name, devices_max: devices, expires_at: expires, id_pattern: idPattern, tags: tag };
      const path = pathTo(claimTokens, { fleet_id: options.fleet });
      const token = await connect(options).request('POST', path, { json });
      const { claiming, ...shown } = token;
      const text = fields({ ...shown, expires_at: token.expires_at ?? 'never (see --expires)' });
      const warning =
        'Claiming is off, so devices get 404: set "claiming": true in the configuration, and reload it.';
      print(options, token, claiming ? text : `${text}\n\n${warning}`);
    });

  listCommand(group, ['list', 'list the claim tokens of a fleet'], claimTokens, {
    columns: claimTokenColumns,
    empty: 'This fleet has no claim tokens.',
  });

  requestCommand(
    group,
    ['revoke <claim_token_id>', 'revoke a claim token'],
    'DELETE',
    `${claimTokens}/{claim_token_id}`,
    { text: () => 'The claim token is revoked.' },
  );
}
