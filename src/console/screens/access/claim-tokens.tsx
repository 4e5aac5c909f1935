import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { ClaimTokenDocument } from '../../../contract/access/token.ts';
import { below, pathTo } from '../../../contract/routes/path.ts';
import { Confirm } from '../../forms/confirm.tsx';
import { Head } from '../../frame/frame.tsx';
import { useKeys } from '../../page/keys.ts';
import { search } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Loaded } from '../../parts/banner.tsx';
import { Commands } from '../../parts/commands.tsx';
import { Moment } from '../../parts/moment.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { call } from '../../server/client.ts';
import { useDocument } from '../../server/resource.ts';
import { AuditLinks } from './audit-links.tsx';
import { NewClaimToken } from './new-claim-token.tsx';
import { Expiry } from './tokens.tsx';

/** Tokens with which devices of the fleet register themselves: how many did, and how many may. */
export function ClaimTokenList({ fleetId, tabs }: { fleetId: string; tabs: ComponentChildren }) {
  const path = pathTo('/fleets/{fleet_id}/claim-tokens', { fleet_id: fleetId });
  const tokens = useDocument(path, 5, { limit: 1_000 });
  const [isMaking, setMaking] = useState(search.value.has('new'));
  const [revoked, setRevoked] = useState<ClaimTokenDocument | undefined>();
  useKeys({ r: tokens.refresh, n: () => setMaking(true) });
  return (
    <>
      <Head
        title="Access"
        read={tokens}
        beside={tabs}
        tools={
          <Act scope="provision" kind="main" onClick={() => setMaking(true)} title="n">
            New claim token
          </Act>
        }
      />
      <div class="body">
        <Loaded resource={tokens}>
          {({ items }) =>
            items.length === 0 ? (
              <p class="empty">
                No claim token in this fleet. With one, devices register themselves when they first call, with
                a secret of their own choice.
              </p>
            ) : (
              <ClaimTokenTable fleetId={fleetId} items={items} onRevoke={setRevoked} />
            )
          }
        </Loaded>
      </div>
      <Commands command={['claim-token', 'list', '--fleet', fleetId]} request={{ path }} />
      {isMaking && (
        <NewClaimToken fleetId={fleetId} onClose={() => setMaking(false)} onMade={tokens.refresh} />
      )}
      {revoked && (
        <Confirm
          title="Revoke the claim token"
          work={() =>
            call('DELETE', below(path, '/{claim_token_id}', { claim_token_id: revoked.claim_token_id }))
          }
          onClose={() => setRevoked(undefined)}
          onDone={tokens.refresh}
        >
          No further device can register with it. Those that did stay.
        </Confirm>
      )}
    </>
  );
}

interface ClaimTokenTableProps {
  fleetId: string;
  items: readonly ClaimTokenDocument[];
  onRevoke: (token: ClaimTokenDocument) => void;
}

function ClaimTokenTable({ fleetId, items, onRevoke }: ClaimTokenTableProps) {
  return (
    <div class="table">
      <table>
        <thead>
          <tr>
            <th>Name</th>
            <th class="number">Claimed</th>
            <th class="less">Ids</th>
            <th class="less">Tags</th>
            <th class="number">Expires</th>
            <th class="number less">Made</th>
            <th>
              <span class="visually-hidden">What can be done</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {items.map((token) => {
            const { claim_token_id, name, devices_claimed, devices_max, id_pattern, tags, created_at } =
              token;
            const isFull = devices_claimed >= devices_max;
            return (
              <tr key={claim_token_id}>
                <td class="cut" title={claim_token_id}>
                  <Untrusted text={name || claim_token_id} lengthMax={120} />
                </td>
                <td class={`number ${isFull ? 'warn strong' : ''}`}>
                  {devices_claimed.toLocaleString('en')} of {devices_max.toLocaleString('en')}
                </td>
                <td class="less cut mono small">
                  <Untrusted text={id_pattern ?? 'any'} lengthMax={80} />
                </td>
                <td class="less cut soft">
                  <Untrusted text={tags.join(', ') || '–'} lengthMax={120} />
                </td>
                <td class="number">
                  <Expiry token={token} />
                </td>
                <td class="number soft less">
                  <Moment time={created_at} />
                </td>
                <td class="acts">
                  <AuditLinks fleetId={fleetId} id={claim_token_id} name={name || claim_token_id} />
                  <Act scope="provision" kind="bad" onClick={() => onRevoke(token)}>
                    Revoke
                    <span class="visually-hidden">
                      <Untrusted text={name || claim_token_id} lengthMax={80} />
                    </span>
                  </Act>
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
