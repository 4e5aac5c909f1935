import { pathTo } from '../../../contract/routes/path.ts';
import { Screen } from '../../frame/frame.tsx';
import { useKeys } from '../../page/keys.ts';
import { Act } from '../../parts/act.tsx';
import { Banner, Loaded } from '../../parts/banner.tsx';
import { Moment } from '../../parts/moment.tsx';
import { useDocument } from '../../server/resource.ts';
import { LimitForm } from './limit-form.tsx';

/** The fleet itself: its name, its limits, and how long it keeps what. */
export function FleetScreen({ fleetId }: { fleetId: string }) {
  const path = pathTo('/fleets/{fleet_id}', { fleet_id: fleetId });
  const fleet = useDocument(path);
  useKeys({ r: fleet.refresh });
  return (
    <Screen
      title="Fleet"
      beside={<code class="soft">{fleetId}</code>}
      read={fleet}
      tools={
        <Act onClick={fleet.refresh} title="Read again (r)">
          Refresh
        </Act>
      }
      commands={[{ command: ['fleet', 'show', fleetId], request: { path } }]}
    >
      <Loaded resource={fleet}>
        {(document) => (
          <>
            {document.deleting_since !== null && (
              <Banner kind="bad">
                This fleet is being deleted, since <Moment time={document.deleting_since} />.
              </Banner>
            )}
            <LimitForm key={fleet.readAtMs} fleet={document} onSaved={fleet.refresh} />
          </>
        )}
      </Loaded>
    </Screen>
  );
}
