import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { TokenDocument } from '../../../contract/access/token.ts';
import { Head } from '../../frame/frame.tsx';
import { useKeys } from '../../page/keys.ts';
import { href } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Loaded } from '../../parts/banner.tsx';
import { Commands } from '../../parts/commands.tsx';
import { Moment } from '../../parts/moment.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { self } from '../../session/session.ts';
import { RevokeToken } from './revoke-token.tsx';
import { scopesText, tokensPath, useTokens } from './token-resource.ts';

/** Who has the console open: each session with its parent, its last request and its end. */
export function SessionList({ fleetId, tabs }: { fleetId: string; tabs: ComponentChildren }) {
  const sessions = useTokens('session');
  const [ended, setEnded] = useState<TokenDocument | undefined>();
  useKeys({ r: sessions.refresh });
  return (
    <>
      <Head title="Access" read={sessions} beside={tabs} />
      <div class="body">
        <Loaded resource={sessions}>
          {({ items }) => (
            <div class="table">
              <table>
                <thead>
                  <tr>
                    <th>Session of</th>
                    <th>May</th>
                    <th class="less">Fleet</th>
                    <th class="number">Last used</th>
                    <th class="number less">Idle end</th>
                    <th class="number less">Ends</th>
                    <th>
                      <span class="visually-hidden">What can be done</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {items.map((session) => (
                    <SessionRow
                      key={session.token_id}
                      fleetId={fleetId}
                      session={session}
                      onEnd={() => setEnded(session)}
                    />
                  ))}
                </tbody>
              </table>
            </div>
          )}
        </Loaded>
      </div>
      <Commands command={['token', 'list']} request={{ path: tokensPath }} />
      {ended && <RevokeToken token={ended} onClose={() => setEnded(undefined)} onDone={sessions.refresh} />}
    </>
  );
}

function SessionRow(props: { fleetId: string; session: TokenDocument; onEnd: () => void }) {
  const { fleetId, session, onEnd } = props;
  const { token_id, name, scopes, fleet_id, last_used_at, idle_at, expires_at } = session;
  const isOwn = token_id === self.value?.token_id;
  return (
    <tr class={isOwn ? 'is-selected' : undefined}>
      <td class="cut">
        <Untrusted text={name} lengthMax={120} />
        {isOwn && <span class="soft"> (this one)</span>}
      </td>
      <td class="soft">{scopesText(scopes)}</td>
      <td class="soft less mono">{fleet_id ?? 'all'}</td>
      <td class="number soft">{last_used_at === null ? 'not lately' : <Moment time={last_used_at} />}</td>
      <td class="number soft less">{idle_at === null ? '–' : <Moment time={idle_at} />}</td>
      <td class="number soft less">{expires_at === null ? '–' : <Moment time={expires_at} />}</td>
      <td class="acts">
        <a class="button is-plain lesser" href={href([fleetId, 'access', 'audit'], { token: token_id })}>
          What it did
        </a>
        <Act
          scope="admin"
          kind="bad"
          onClick={onEnd}
          unless={isOwn ? 'It is your own: log out instead' : undefined}
        >
          End
        </Act>
      </td>
    </tr>
  );
}
