import { pathTo } from '../../../contract/routes/path.ts';
import { Field } from '../../forms/field.tsx';
import { MakeDrawer } from '../../forms/make-drawer.tsx';
import { DeviceSecret } from '../../forms/shown-once.tsx';
import { wordsIn } from '../../forms/words.ts';
import { Banner } from '../../parts/banner.tsx';
import { DeviceLink } from '../../parts/device.tsx';
import { call } from '../../server/client.ts';
import { keepSecret } from '../device/made-secrets.ts';

/** Makes one device, whose secret is shown this one time. */
export function NewDeviceDrawer({ fleetId, onClose }: { fleetId: string; onClose: () => void }) {
  const path = pathTo('/fleets/{fleet_id}/devices', { fleet_id: fleetId });
  return (
    <MakeDrawer
      title="New device"
      verb="Create"
      secret="secret"
      onClose={onClose}
      make={async (text) => {
        const body = {
          device_id: text('id') || undefined,
          name: text('name') || undefined,
          tags: wordsIn(text('tags')),
        };
        const made = await call('POST', path, { body });
        keepSecret(made);
        return made;
      }}
      shown={({ device_id, device_secret }) => (
        <>
          <Banner kind="good">
            Made <DeviceLink fleetId={fleetId} id={device_id} />.
          </Banner>
          <DeviceSecret fleetId={fleetId} deviceId={device_id} secret={device_secret} />
        </>
      )}
    >
      <Field label="Name" name="name" maxLength={255} />
      <Field label="Tags" name="tags" hint="Parted by commas" />
      <Field
        label="Id"
        name="id"
        class="mono"
        pattern="[A-Za-z0-9]{10}"
        title="10 letters or digits"
        hint="10 letters or digits; empty: the server draws one"
      />
    </MakeDrawer>
  );
}
