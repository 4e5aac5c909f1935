import { href } from '../../page/router.ts';
import { shownText } from '../../parts/untrusted.tsx';

/** The entries of what a token did, and of who made or changed it. */
export function AuditLinks({ fleetId, id, name }: { fleetId: string; id: string; name: string }) {
  const audit = (query: Record<string, string>): string => href([fleetId, 'access', 'audit'], query);
  const of = <span class="visually-hidden"> {shownText(name, 80)}</span>;
  return (
    <>
      <a class="button is-plain lesser" href={audit({ token: id })}>
        What it did
        {of}
      </a>
      <a class="button is-plain lesser" href={audit({ about: id })}>
        Who made it
        {of}
      </a>
    </>
  );
}
