import type { ComponentChildren } from 'preact';
import type { TokenDocument } from '../../../contract/access/token.ts';
import { sessionColumns, tokenColumns } from '../../../contract/columns/access.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { Untrusted } from '../../parts/untrusted.tsx';
import { call } from '../../server/client.ts';
import { type Resource, useResource } from '../../server/resource.ts';
import { self } from '../../session/session.ts';
import { Credentials, Expiry, type Revocation } from './credentials.tsx';
import { NewToken } from './new-token.tsx';

const path = pathTo('/tokens', {});
const everySeconds = 10;
const pageMax = 1_000;

/** The API tokens of the server: what each may do, when it was used last, when it ends. */
export function TokenList({ fleetId, tabs }: { fleetId: string; tabs: ComponentChildren }) {
  const tokens = useTokens('token');
  return (
    <Credentials
      fleetId={fleetId}
      tabs={tabs}
      resource={tokens}
      empty="No API token yet. What is done now is done with the bootstrap token of the data folder, which may do everything: make tokens for programs and people, then turn it off (bootstrapToken)."
      scope="admin"
      columns={tokenColumns}
      idOf={({ token_id }) => token_id}
      cells={{
        name: ({ token_id, name }) => (
          <span title={token_id}>
            <Untrusted text={name} lengthMax={120} />
          </span>
        ),
        scopes: (token) => <Rights token={token} />,
        expires_at: (token) => <Expiry token={token} />,
      }}
      revocationOf={revocationOf}
      making={{
        label: 'New token',
        drawer: (onClose) => <NewToken fleetId={fleetId} onClose={onClose} onMade={tokens.refresh} />,
      }}
      command={['token', 'list']}
      path={path}
    >
      {tokens.value?.isCut && <p class="hint">There are further ones: fleetpost token list</p>}
    </Credentials>
  );
}

/** Who has the console open: each session with its parent, its last request and its end. */
export function SessionList({ fleetId, tabs }: { fleetId: string; tabs: ComponentChildren }) {
  return (
    <Credentials
      fleetId={fleetId}
      tabs={tabs}
      resource={useTokens('session')}
      scope="admin"
      columns={sessionColumns}
      idOf={({ token_id }) => token_id}
      isSelected={isOwn}
      cells={{
        name: (session) => (
          <>
            <Untrusted text={session.name} lengthMax={120} />
            {isOwn(session) && <span class="soft"> (this one)</span>}
          </>
        ),
        scopes: (session) => <Rights token={session} />,
        browser: ({ browser, address }) => (
          <>
            <div class="soft">
              <Untrusted text={browser ?? 'not known'} lengthMax={120} />
            </div>
            <div class="small faint">
              <Untrusted text={address ?? 'address not known'} lengthMax={60} />
            </div>
          </>
        ),
      }}
      class="sessions"
      revocationOf={revocationOf}
      command={['token', 'list']}
      path={path}
    />
  );
}

function isOwn({ token_id }: TokenDocument): boolean {
  return token_id === self.value?.token_id;
}

/** Says what a token may do, in few words. */
function Rights({ token: { scopes } }: { token: TokenDocument }) {
  return <span class="soft">{scopes.includes('admin') ? 'everything' : scopes.join(', ')}</span>;
}

function revocationOf(token: TokenDocument): Revocation {
  const { token_id, kind, name } = token;
  const isSession = kind === 'session';
  return {
    verb: isSession ? 'End' : 'Revoke',
    title: isSession ? 'End the session' : 'Revoke the token',
    sentence: (
      <>
        <Untrusted text={name} lengthMax={120} /> is refused from then on, and its open requests are cut off
        {!isSession && '; the console sessions that were opened with it end too'}.
      </>
    ),
    unless: !isOwn(token) ? undefined : `It is your own${isSession ? ': log out instead' : ''}`,
    work: () => call('DELETE', pathTo('/tokens/{token_id}', { token_id })),
  };
}

interface ListedTokens {
  items: readonly TokenDocument[];
  /** Further ones were not read: a table holds no more. */
  isCut: boolean;
}

/** Tokens of one kind, newest first: at most as many as a table holds. */
function useTokens(kind: TokenDocument['kind']): Resource<ListedTokens> {
  return useResource(`tokens ${kind}`, (signal) => readTokens(kind, signal), everySeconds);
}

async function readTokens(kind: TokenDocument['kind'], signal: AbortSignal): Promise<ListedTokens> {
  const first = await readPage('', signal);
  const second = first.next === null ? { items: [], next: null } : await readPage(first.next, signal);
  const items = [...first.items, ...second.items].filter((token) => token.kind === kind);
  return { items: items.reverse(), isCut: second.next !== null };
}

function readPage(after: string, signal: AbortSignal) {
  return call('GET', path, { query: { after, limit: pageMax }, signal });
}
