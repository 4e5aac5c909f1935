import { useState } from 'preact/hooks';
import { pathTo } from '../../../contract/routes/path.ts';
import { Screen } from '../../frame/frame.tsx';
import { Menu } from '../../frame/menu.tsx';
import { useKeys } from '../../page/keys.ts';
import { Act } from '../../parts/act.tsx';
import { Banner, Loaded } from '../../parts/banner.tsx';
import { Moment } from '../../parts/moment.tsx';
import { noteFleetChange } from '../../server/changed-fleets.ts';
import { useDocument } from '../../server/resource.ts';
import { self } from '../../session/session.ts';
import { DeleteFleet } from './delete-fleet.tsx';
import { LimitForm } from './limit-form.tsx';
import { NewFleet } from './new-fleet.tsx';

/** The fleet itself: its name, its limits, and how long it keeps what. */
export function FleetScreen({ fleetId }: { fleetId: string }) {
  const path = pathTo('/fleets/{fleet_id}', { fleet_id: fleetId });
  const fleet = useDocument(path);
  const [asked, setAsked] = useState<'fleet' | 'deletion' | undefined>();
  const close = (): void => setAsked(undefined);
  const ofOneFleet = self.value?.fleet_id == null ? undefined : 'Your session is for this fleet only.';
  useKeys({ r: fleet.refresh });
  return (
    <Screen
      title="Fleet"
      beside={<code class="soft">{fleetId}</code>}
      read={fleet}
      tools={
        <>
          <Menu label="More to do with fleets">
            <Act
              scope="admin"
              kind="bad"
              onClick={() => setAsked('deletion')}
              unless={fleet.value?.deleting_since == null ? undefined : 'It is being deleted.'}
            >
              Delete this fleet
            </Act>
          </Menu>
          <Act onClick={fleet.refresh} title="Read again (r)">
            Refresh
          </Act>
          <Act scope="provision" onClick={() => setAsked('fleet')} unless={ofOneFleet}>
            New fleet
          </Act>
        </>
      }
      commands={[{ command: ['fleet', 'show', fleetId], request: { path } }]}
    >
      {asked === 'fleet' && <NewFleet onClose={close} />}
      {asked === 'deletion' && fleet.value && (
        <DeleteFleet fleet={fleet.value} onClose={close} onDone={fleet.refresh} />
      )}
      <Loaded resource={fleet}>
        {(document) => (
          <>
            {document.deleting_since !== null && (
              <Banner kind="bad">
                This fleet is being deleted, since <Moment time={document.deleting_since} />.
              </Banner>
            )}
            <LimitForm
              key={fleet.readAtMs}
              fleet={document}
              onSaved={() => {
                noteFleetChange();
                fleet.refresh();
              }}
            />
          </>
        )}
      </Loaded>
    </Screen>
  );
}
