import type { Command } from 'commander';
import { below, pathTo } from '../../../contract/routes/path.ts';
import { connect } from '../../connection.ts';
import { moment } from '../../moment.ts';
import {
  type FleetOptions,
  fleetCommand,
  integerOption,
  type ListOptions,
  several,
  withListOptions,
} from '../../options.ts';
import { fields, listText, print } from '../../output.ts';

interface CreateOptions extends FleetOptions {
  devices: number;
  name?: string;
  expires?: string;
  idPattern?: string;
  tag?: string[];
}

function claimTokensPath({ fleet: fleet_id }: { fleet: string }) {
  return pathTo('/fleets/{fleet_id}/claim-tokens', { fleet_id });
}

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
      const token = await connect(options).request('POST', claimTokensPath(options), { json });
      const { claiming, ...shown } = token;
      const text = fields({ ...shown, expires_at: token.expires_at ?? 'never (see --expires)' });
      const warning =
        'Claiming is off, so devices get 404: set "claiming": true in the configuration, and reload it.';
      print(options, token, claiming ? text : `${text}\n\n${warning}`);
    });

  withListOptions(fleetCommand(group, 'list', 'list the claim tokens of a fleet')).action(
    async (options: FleetOptions & ListOptions) => {
      const tokens = await connect(options).list(claimTokensPath(options), options);
      const columns = [
        'claim_token_id',
        'name',
        'devices_claimed',
        'devices_max',
        'expires_at',
        'expired',
        'id_pattern',
        'tags',
      ] as const;
      print(options, tokens, listText(tokens, columns, 'This fleet has no claim tokens.'));
    },
  );

  fleetCommand(group, 'revoke <claim_token_id>', 'revoke a claim token').action(
    async (id: string, options: FleetOptions) => {
      const path = below(claimTokensPath(options), '/{claim_token_id}', { claim_token_id: id });
      await connect(options).request('DELETE', path);
      print(options, { ok: true }, 'The claim token is revoked.');
    },
  );
}
