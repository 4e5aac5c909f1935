import type { DeviceDocument } from '../../contract/device.ts';
import { href } from '../page/router.ts';

export interface StateMarkProps {
  device: Pick<DeviceDocument, 'state' | 'enabled'>;
  /** Why it is refused now; absent if it is not. */
  refused?: string | undefined;
}

/** The state of a device, the one that matters most: disabled, refused, else whether it is connected. */
export function StateMark({ device, refused }: StateMarkProps) {
  const { enabled, state: connection } = device;
  const state = !enabled ? 'disabled' : refused !== undefined ? 'refused' : connection;
  const isQuiet = state === 'offline' || state === 'disabled';
  return (
    <span class={`state is-${state}`} title={state === 'refused' ? `${refused}; ${connection}` : undefined}>
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
