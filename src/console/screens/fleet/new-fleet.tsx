import { pathTo } from '../../../contract/routes/path.ts';
import { Field } from '../../forms/field.tsx';
import { MakeDrawer } from '../../forms/make-drawer.tsx';
import { href } from '../../page/router.ts';
import { Banner } from '../../parts/banner.tsx';
import { shownText } from '../../parts/untrusted.tsx';
import { noteFleetChange } from '../../server/changed-fleets.ts';
import { call } from '../../server/client.ts';

/** Makes a fleet, with the limits of the configuration. */
export function NewFleet({ onClose }: { onClose: () => void }) {
  return (
    <MakeDrawer
      title="New fleet"
      verb="Make the fleet"
      onClose={onClose}
      make={async (text) => {
        const body = { name: text('name'), fleet_id: text('id') || undefined };
        const made = await call('POST', pathTo('/fleets', {}), { body });
        noteFleetChange();
        return made;
      }}
      shown={({ fleet_id, name }) => (
        <>
          <Banner kind="good">Made {shownText(name, 80) || fleet_id}.</Banner>
          <p>
            <a class="button is-main" href={href([fleet_id])}>
              Open {fleet_id}
            </a>
          </p>
        </>
      )}
    >
      <Field label="Name" name="name" required maxLength={255} hint="What people call it; can be changed" />
      <Field
        label="Id"
        name="id"
        class="mono"
        pattern="[A-Za-z0-9]{8}"
        maxLength={8}
        spellcheck={false}
        title="8 letters or digits"
        hint="8 letters or digits, which its devices send and which stay; empty: the server draws one"
      />
    </MakeDrawer>
  );
}
