import type { Command } from 'commander';
import { pathOf } from '../../admin-client.ts';
import { type ConnectionOptions, connect } from '../../connection.ts';
import { moment } from '../../moment.ts';
import { fleetCommand, integerOption, type ListOptions, several, withListOptions } from '../../options.ts';
import { fields, listText, print } from '../../output.ts';

interface FleetOptions extends ConnectionOptions {
  fleet: string;
}

interface ClaimToken {
  claim_token_id: string;
  name: string;
  devices_max: number;
  devices_claimed: number;
  expires_at: string | null;
  expired: boolean;
  id_pattern: string | null;
  tags: string[];
}

interface CreateOptions extends FleetOptions {
  devices: number;
  name?: string;
  expires?: string;
  idPattern?: string;
  tag?: string[];
}

/** `claim-token create|list|revoke`. */
export function addClaimTokenCommands(program: Command): void {
  const group = program
    .command('claim-token')
    .description('let devices register themselves (claiming must be turned on)');

  fleetCommand(group, 'create', 'make a claim token; its text is shown this once')
    .requiredOption('--devices <n>', 'how many devices may claim with it', integerOption(1, 100_000_000))
    .option('--name <text>', 'a name for people')
    .option('--expires <when>', 'a time, or a length of time like 90d; without it, never', moment('ahead'))
    .option('--id-pattern <re2>', 'what a device id must match; devices must name theirs then')
    .option('--tag <tag>', 'a tag of the devices; may be given several times', several)
    .action(async ({ fleet, devices, name, expires, idPattern, tag, ...options }: CreateOptions) => {
      const json = { name, devices_max: devices, expires_at: expires, id_pattern: idPattern, tags: tag };
      const path = pathOf('fleets', fleet, 'claim-tokens');
      const token = await connect(options).request<ClaimToken & { claim_token: string }>('POST', path, {
        json,
      });
      print(options, token, fields(token));
    });

  withListOptions(fleetCommand(group, 'list', 'list the claim tokens of a fleet')).action(
    async (options: FleetOptions & ListOptions) => {
      const tokens = await connect(options).list<ClaimToken>(
        pathOf('fleets', options.fleet, 'claim-tokens'),
        options,
      );
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

  fleetCommand(group, 'revoke <claim_token_id>', 'have no device claim with a claim token any more').action(
    async (id: string, options: FleetOptions) => {
      await connect(options).request('DELETE', pathOf('fleets', options.fleet, 'claim-tokens', id));
      print(options, { ok: true }, 'The claim token is revoked.');
    },
  );
}
