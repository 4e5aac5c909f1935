import { href } from '../../page/router.ts';
import { shownText } from '../../parts/untrusted.tsx';

/** The entries of what a token did, and of who made or changed it. */
export function AuditLinks({ fleetId, id, name }: { fleetId: string; id: string; name: string }) {
  const audit = (query: Record<string, string>): string => href([fleetId, 'access', 'audit'], query);
  const text = shownText(name, 80);
  return (
    <>
      <a class="button is-plain less" href={audit({ token: id })} aria-label={`What ${text} did`}>
        What it did
      </a>
      <a class="button is-plain less" href={audit({ about: id })} aria-label={`Who made ${text}`}>
        Who made it
      </a>
    </>
  );
}
