import type { FleetDocument } from '../../contract/fleet.ts';
import { href } from '../page/router.ts';
import { Act } from '../parts/act.tsx';
import { Banner } from '../parts/banner.tsx';
import { shownText, Untrusted } from '../parts/untrusted.tsx';
import { logOut } from '../session/session.ts';

/** In place of all screens: the address names a fleet that is not there, or not for this session. */
export function UnknownFleet({ fleetId, fleets }: { fleetId: string; fleets: readonly FleetDocument[] }) {
  return (
    <main class="welcome">
      <h1>No such fleet</h1>
      <Banner kind="bad">
        There is no fleet <Untrusted text={fleetId} lengthMax={40} />, or your session has no right to it.
      </Banner>
      <ul class="list">
        {fleets.map(({ fleet_id, name }) => (
          <li key={fleet_id} class="row">
            <a class="link" href={href([fleet_id])}>
              {name === '' ? fleet_id : `${shownText(name, 60)} · ${fleet_id}`}
            </a>
          </li>
        ))}
      </ul>
      <div class="inline">
        <Act onClick={logOut}>Log out</Act>
      </div>
    </main>
  );
}
