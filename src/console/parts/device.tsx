import type { DeviceDocument } from '../../contract/device.ts';
import { href } from '../page/router.ts';

/** The connection state of a device, or that it is disabled, which comes before. */
export function StateMark({ device }: { device: Pick<DeviceDocument, 'state' | 'enabled'> }) {
  const state = device.enabled ? device.state : 'disabled';
  const isQuiet = state === 'offline' || state === 'disabled';
  return (
    <span class={`state is-${state}`}>
      <span class={`word ${isQuiet ? 'soft' : ''}`}>{state}</span>
    </span>
  );
}

/** The id of a device, which leads to it. */
export function DeviceLink({ fleetId, id }: { fleetId: string; id: string }) {
  return (
    <a class="link mono" href={href([fleetId, 'devices', id])}>
      {id}
    </a>
  );
}
