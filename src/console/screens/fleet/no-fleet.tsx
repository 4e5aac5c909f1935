import { useState } from 'preact/hooks';
import { Act } from '../../parts/act.tsx';
import { self } from '../../session/session.ts';
import { NewFleet } from './new-fleet.tsx';

/** What a console without a fleet begins with. */
export function NoFleet() {
  const [isMaking, setMaking] = useState(false);
  const ofOneFleet =
    self.value?.fleet_id == null ? undefined : 'Your session is for one fleet, which is gone.';
  return (
    <div class="stack">
      <h1>No fleet yet</h1>
      <p>A fleet has devices of one kind or of one customer, with limits and records of its own.</p>
      <div class="inline">
        <Act scope="provision" kind="main" onClick={() => setMaking(true)} unless={ofOneFleet}>
          Make the first fleet
        </Act>
        <span class="hint">
          or <code>fleetpost fleet create --name Garden</code>
        </span>
      </div>
      {isMaking && <NewFleet onClose={() => setMaking(false)} />}
    </div>
  );
}
