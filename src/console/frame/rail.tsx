import type { FleetDocument } from '../../contract/fleet.ts';
import { go, href, path } from '../page/router.ts';
import { Act } from '../parts/act.tsx';
import { Icon } from '../parts/icon.tsx';
import { Moment } from '../parts/moment.tsx';
import { shownText, Untrusted } from '../parts/untrusted.tsx';
import { logOut, self } from '../session/session.ts';
import { Navigation, screenOf } from './navigation.tsx';
import { openPalette } from './palette-key.ts';

/** The side of the page: the fleet, its screens, and whose session it is. */
export function Rail({ fleetId, fleets }: { fleetId: string; fleets: readonly FleetDocument[] }) {
  const current = screenOf(path.value[1])?.part ?? '';
  const isListed = fleets.some(({ fleet_id }) => fleet_id === fleetId);
  return (
    <aside class="rail">
      <a class="brand" href={href([fleetId])}>
        <Icon name="mail" />
        Fleetpost
      </a>
      <select
        class="select fleet"
        aria-label="Fleet"
        value={fleetId}
        onChange={({ currentTarget }) => go(href([currentTarget.value, ...(current ? [current] : [])]))}
      >
        {!isListed && <option value={fleetId}>{fleetId}</option>}
        {fleets.map(({ fleet_id, name }) => (
          <option key={fleet_id} value={fleet_id}>
            {name === '' ? fleet_id : `${shownText(name, 40)} · ${fleet_id}`}
          </option>
        ))}
      </select>
      <button type="button" class="button go-to" title="Go to or do… (Ctrl K)" onClick={openPalette}>
        <Icon name="search" />
        <span class="word">Go to…</span>
        <kbd>Ctrl K</kbd>
      </button>
      <Navigation fleetId={fleetId}>
        <Who />
      </Navigation>
    </aside>
  );
}

/** Whose session it is, what it may do, and how long. */
function Who() {
  if (self.value === undefined) return null;
  const { name, scopes, fleet_id, expires_at } = self.value;
  return (
    <div class="who">
      <Untrusted text={name} lengthMax={40} />
      <span>
        {scopes.join(', ')}; {fleet_id ?? 'all fleets'}
      </span>
      {expires_at !== null && (
        <span>
          ends <Moment time={expires_at} />
        </span>
      )}
      <Act kind="plain" onClick={logOut}>
        <Icon name="exit" />
        Log out
      </Act>
    </div>
  );
}
