import { useState } from 'preact/hooks';
import { pathTo } from '../../../contract/routes/path.ts';
import { DeviceLink } from '../../parts/device.tsx';
import { useDocument } from '../../server/resource.ts';

const devicesMax = 5;

/** Ids that begin like one that is not there, as a mistyped or a cut one does: a look into their index. */
export function NearestDevices({ fleetId, deviceId }: { fleetId: string; deviceId: string }) {
  const [beginning] = useState(deviceId.replace(/[^A-Za-z0-9].*$/, '').slice(0, 4));
  const path = pathTo('/fleets/{fleet_id}/devices', { fleet_id: fleetId });
  const { value } = useDocument(beginning === '' ? undefined : path, undefined, {
    id_prefix: beginning,
    limit: devicesMax,
  });
  if (value === undefined || value.items.length === 0) return null;
  return (
    <span class="inline soft">
      Ids that begin so:
      {value.items.map(({ device_id }) => (
        <DeviceLink key={device_id} fleetId={fleetId} id={device_id} />
      ))}
    </span>
  );
}
