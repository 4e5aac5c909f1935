import { href } from '../../page/router.ts';
import { AuditScreen } from './audit.tsx';
import { ClaimTokenList } from './claim-tokens.tsx';
import { SessionList, TokenList } from './tokens.tsx';

const tabs = [
  ['tokens', 'Tokens'],
  ['claim-tokens', 'Claim tokens'],
  ['sessions', 'Sessions'],
  ['audit', 'Audit log'],
] as const;

/** Who may use the admin API, who does, and what was changed by whom. */
export function AccessScreen({ fleetId, part = 'tokens' }: { fleetId: string; part?: string | undefined }) {
  const links = (
    <nav class="tabs" aria-label="Access">
      {tabs.map(([tab, name]) => (
        <a key={tab} href={href([fleetId, 'access', tab])} aria-current={tab === part ? 'page' : undefined}>
          {name}
        </a>
      ))}
    </nav>
  );
  if (part === 'claim-tokens') return <ClaimTokenList fleetId={fleetId} tabs={links} />;
  if (part === 'sessions') return <SessionList fleetId={fleetId} tabs={links} />;
  if (part === 'audit') return <AuditScreen fleetId={fleetId} tabs={links} />;
  return <TokenList fleetId={fleetId} tabs={links} />;
}
