import { useState } from 'preact/hooks';
import type { RotatedSecretDocument } from '../../../contract/device.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { Drawer } from '../../forms/dialogs.tsx';
import { ErrorBanner } from '../../parts/banner.tsx';
import { Moment } from '../../parts/moment.tsx';
import { call } from '../../server/client.ts';
import { useSubmit } from '../../server/submit.ts';
import { Secret } from '../devices/secret.tsx';

export interface RotateProps {
  fleetId: string;
  deviceId: string;
  onClose: () => void;
}

const graces = [
  [0, 'ends at once'],
  [3_600, 'stays valid for an hour'],
  [86_400, 'stays valid for a day'],
  [604_800, 'stays valid for a week'],
] as const;

/** Makes a new secret, shown this one time. */
export function Rotate({ fleetId, deviceId, onClose }: RotateProps) {
  const [grace, setGrace] = useState(86_400);
  const [rotated, setRotated] = useState<RotatedSecretDocument | undefined>();
  const { error, isBusy, submit } = useSubmit();
  const rotate = (): void => {
    const path = pathTo('/fleets/{fleet_id}/devices/{device_id}/rotate-secret', {
      fleet_id: fleetId,
      device_id: deviceId,
    });
    void submit(async () => setRotated(await call('POST', path, { body: { grace_seconds: grace } })));
  };
  return (
    <Drawer title="New secret" onClose={onClose}>
      {rotated === undefined ? (
        <>
          <p>
            A new secret for <code>{deviceId}</code>.
          </p>
          <div class="field">
            <label for="grace">The old one</label>
            <select
              id="grace"
              class="select"
              value={grace}
              onChange={({ currentTarget }) => setGrace(Number(currentTarget.value))}
            >
              {graces.map(([seconds, text]) => (
                <option key={seconds} value={seconds}>
                  {text}
                </option>
              ))}
            </select>
          </div>
          {error && <ErrorBanner error={error} />}
          <div>
            <button type="button" class="button is-main" disabled={isBusy} onClick={rotate}>
              Make a new secret
            </button>
          </div>
        </>
      ) : (
        <>
          <Secret fleetId={fleetId} deviceId={deviceId} secret={rotated.device_secret} />
          {rotated.old_secret_until !== null && (
            <p>
              The old one ends <Moment time={rotated.old_secret_until} />.
            </p>
          )}
        </>
      )}
    </Drawer>
  );
}
