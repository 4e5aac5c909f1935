import { below } from '../../../contract/routes/path.ts';
import { SelectField } from '../../forms/field.tsx';
import { MakeDrawer } from '../../forms/make-drawer.tsx';
import { DeviceSecret } from '../../forms/shown-once.tsx';
import { Moment } from '../../parts/moment.tsx';
import { call } from '../../server/client.ts';
import { pathOfDevice } from '../../server/device-path.ts';
import { keepSecret } from './made-secrets.ts';

export interface RotateProps {
  fleetId: string;
  deviceId: string;
  onClose: () => void;
}

const graces = [
  ['0', 'ends at once'],
  ['3600', 'stays valid for an hour'],
  ['86400', 'stays valid for a day'],
  ['604800', 'stays valid for a week'],
] as const;

/** Makes a new secret, shown this one time. */
export function Rotate({ fleetId, deviceId, onClose }: RotateProps) {
  const path = below(pathOfDevice(fleetId, deviceId), '/rotate-secret', {});
  return (
    <MakeDrawer
      title="New secret"
      verb="Make a new secret"
      secret="secret"
      onClose={onClose}
      make={async (text) => {
        const made = await call('POST', path, { body: { grace_seconds: Number(text('grace')) } });
        keepSecret(made);
        return made;
      }}
      shown={({ device_secret, old_secret_until }) => (
        <>
          <DeviceSecret fleetId={fleetId} deviceId={deviceId} secret={device_secret} />
          {old_secret_until !== null && (
            <p>
              The old one ends <Moment time={old_secret_until} />.
            </p>
          )}
        </>
      )}
    >
      <p>
        A new secret for <code>{deviceId}</code>.
      </p>
      <SelectField label="The old one" name="grace" defaultValue="86400" options={graces} />
    </MakeDrawer>
  );
}
