import type { CreatedDeviceDocument } from '../../../contract/device.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { Field } from '../../forms/field.tsx';
import { MakeDrawer } from '../../forms/make-drawer.tsx';
import { Paste } from '../../forms/paste.tsx';
import { DeviceSecret } from '../../forms/shown-once.tsx';
import { wordsIn } from '../../forms/words.ts';
import { href } from '../../page/router.ts';
import { Banner, Loaded } from '../../parts/banner.tsx';
import { Moment } from '../../parts/moment.tsx';
import { call } from '../../server/client.ts';
import { pathOfDevice } from '../../server/device-path.ts';
import { useDocument } from '../../server/resource.ts';
import { firstRequests } from '../device/first-requests.ts';
import { keepSecret } from '../device/made-secrets.ts';

/** Makes one device, whose secret is shown this one time. */
export function NewDeviceDrawer(props: { fleetId: string; onMade: () => void; onClose: () => void }) {
  const { fleetId, onMade, onClose } = props;
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
        onMade();
        return made;
      }}
      shown={(made) => (
        <>
          <Banner
            kind="good"
            tools={
              <a class="button" href={href([fleetId, 'devices', made.device_id])}>
                Open the device
              </a>
            }
          >
            Made <code>{made.device_id}</code>.
          </Banner>
          <DeviceSecret fleetId={fleetId} deviceId={made.device_id} secret={made.device_secret} />
          <FirstRequest device={made} />
        </>
      )}
    >
      <Field label="Name" name="name" maxLength={255} />
      <Field label="Tags" name="tags" hint="Separated by commas" />
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

/** Soon: somebody has just pasted the command. */
const everySeconds = 5;

/** Says that the first request came, once it has. */
function FirstCall({ device: { fleet_id, device_id } }: { device: CreatedDeviceDocument }) {
  const { value } = useDocument(
    pathOfDevice(fleet_id, device_id),
    everySeconds,
    undefined,
    (device) => device.last_seen !== null,
  );
  const at = value?.last_seen ?? null;
  return (
    <p class="hint" role="status">
      {at === null ? (
        'Waiting for it…'
      ) : (
        <span class="state is-active">
          It called <Moment time={at} />
        </span>
      )}
    </p>
  );
}

/** The command with which it says that it is alive, to paste where the server can be reached. */
function FirstRequest({ device }: { device: CreatedDeviceDocument }) {
  const endpoint = useDocument(pathTo('/device-endpoint', {}));
  return (
    <Loaded resource={endpoint}>
      {(at) => (
        <div class="field">
          <p>
            Its first request, to <code>{at.url}</code>:
          </p>
          <Paste text={firstRequests(device, at).heartbeat} label="Copy the command" />
          <FirstCall device={device} />
          {at.ca_file !== null && (
            <p class="hint">
              Elsewhere than on the server, it needs a copy of the certificate that it names.
            </p>
          )}
        </div>
      )}
    </Loaded>
  );
}
