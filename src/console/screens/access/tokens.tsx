import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { TokenDocument } from '../../../contract/access/token.ts';
import { Head } from '../../frame/frame.tsx';
import { useKeys } from '../../page/keys.ts';
import { search } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Loaded } from '../../parts/banner.tsx';
import { Commands } from '../../parts/commands.tsx';
import { Moment } from '../../parts/moment.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { self } from '../../session/session.ts';
import { AuditLinks } from './audit-links.tsx';
import { NewToken } from './new-token.tsx';
import { RevokeToken } from './revoke-token.tsx';
import { scopesText, tokensPath, useTokens } from './token-resource.ts';

/** The API tokens of the server: what each may do, when it was used last, when it ends. */
export function TokenList({ fleetId, tabs }: { fleetId: string; tabs: ComponentChildren }) {
  const tokens = useTokens('token');
  const [isMaking, setMaking] = useState(search.value.has('new'));
  const [revoked, setRevoked] = useState<TokenDocument | undefined>();
  useKeys({ r: tokens.refresh, n: () => setMaking(true) });
  return (
    <>
      <Head
        title="Access"
        read={tokens}
        beside={tabs}
        tools={
          <Act scope="admin" kind="main" onClick={() => setMaking(true)} title="n">
            New token
          </Act>
        }
      />
      <div class="body">
        <Loaded resource={tokens}>
          {({ items, isCut }) =>
            items.length === 0 ? (
              <p class="empty">
                No API token yet. What is done now is done with the bootstrap token of the data folder, which
                may do everything: make tokens for programs and people, then turn it off (bootstrapToken).
              </p>
            ) : (
              <>
                <TokenTable fleetId={fleetId} items={items} onRevoke={setRevoked} />
                {isCut && <p class="hint">There are further ones: fleetpost token list</p>}
              </>
            )
          }
        </Loaded>
      </div>
      <Commands command={['token', 'list']} request={{ path: tokensPath }} />
      {isMaking && <NewToken fleetId={fleetId} onClose={() => setMaking(false)} onMade={tokens.refresh} />}
      {revoked && (
        <RevokeToken token={revoked} onClose={() => setRevoked(undefined)} onDone={tokens.refresh} />
      )}
    </>
  );
}

interface TokenTableProps {
  fleetId: string;
  items: readonly TokenDocument[];
  onRevoke: (token: TokenDocument) => void;
}

function TokenTable({ fleetId, items, onRevoke }: TokenTableProps) {
  return (
    <div class="table">
      <table>
        <thead>
          <tr>
            <th>Name</th>
            <th>May</th>
            <th class="less">Fleet</th>
            <th class="number less">Last used</th>
            <th class="number">Expires</th>
            <th class="number less">Made</th>
            <th>
              <span class="visually-hidden">What can be done</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {items.map((token) => {
            const { token_id, name, scopes, fleet_id, created_at, last_used_at } = token;
            return (
              <tr key={token_id}>
                <td class="cut" title={token_id}>
                  <Untrusted text={name} lengthMax={120} />
                </td>
                <td class="soft">{scopesText(scopes)}</td>
                <td class="soft less mono">{fleet_id ?? 'all'}</td>
                <td class="number soft less">
                  {last_used_at === null ? 'not lately' : <Moment time={last_used_at} />}
                </td>
                <td class="number">
                  <Expiry token={token} />
                </td>
                <td class="number soft less">
                  <Moment time={created_at} />
                </td>
                <td class="acts">
                  <AuditLinks fleetId={fleetId} id={token_id} name={name} />
                  <Act
                    scope="admin"
                    kind="bad"
                    onClick={() => onRevoke(token)}
                    unless={token_id === self.value?.token_id ? 'It is your own' : undefined}
                  >
                    Revoke
                    <span class="visually-hidden">
                      <Untrusted text={name} lengthMax={80} />
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

/** When a token ends, or that it has. */
export function Expiry({ token }: { token: { expires_at: string | null; expired: boolean } }) {
  if (token.expires_at === null) return <span class="faint">never</span>;
  return (
    <span class={token.expired ? 'bad strong' : 'soft'}>
      <Moment time={token.expires_at} />
    </span>
  );
}
