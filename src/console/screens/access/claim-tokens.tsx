import type { ComponentChildren } from 'preact';
import { claimTokenColumns } from '../../../contract/columns/access.ts';
import { below, pathTo } from '../../../contract/routes/path.ts';
import { Untrusted } from '../../parts/untrusted.tsx';
import { call } from '../../server/client.ts';
import { useDocument } from '../../server/resource.ts';
import { Credentials, Expiry } from './credentials.tsx';
import { NewClaimToken } from './new-claim-token.tsx';

/** Tokens with which devices of the fleet register themselves: how many did, and how many may. */
export function ClaimTokenList({ fleetId, tabs }: { fleetId: string; tabs: ComponentChildren }) {
  const path = pathTo('/fleets/{fleet_id}/claim-tokens', { fleet_id: fleetId });
  const tokens = useDocument(path, 15, { limit: 1_000 });
  return (
    <Credentials
      fleetId={fleetId}
      tabs={tabs}
      resource={tokens}
      empty="No claim token in this fleet. With one, devices register themselves when they first call, with a secret of their own choice."
      scope="provision"
      columns={claimTokenColumns}
      idOf={({ claim_token_id }) => claim_token_id}
      cells={{
        name: ({ claim_token_id, name }) => (
          <span title={claim_token_id}>
            <Untrusted text={name || claim_token_id} lengthMax={120} />
          </span>
        ),
        devices_claimed: ({ devices_claimed, devices_max }) => (
          <span class={devices_claimed >= devices_max ? 'warn strong' : ''}>
            {devices_claimed.toLocaleString('en')} of {devices_max.toLocaleString('en')}
          </span>
        ),
        expires_at: (token) => <Expiry token={token} />,
      }}
      revocationOf={({ claim_token_id }) => ({
        verb: 'Revoke',
        title: 'Revoke the claim token',
        sentence: 'No further device can register with it. Those that did stay.',
        work: () => call('DELETE', below(path, '/{claim_token_id}', { claim_token_id })),
      })}
      making={{
        label: 'New claim token',
        drawer: (onClose) => <NewClaimToken fleetId={fleetId} onClose={onClose} onMade={tokens.refresh} />,
      }}
      command={['claim-token', 'list', '--fleet', fleetId]}
      path={path}
    />
  );
}
