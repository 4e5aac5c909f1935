import type { ComponentChildren } from 'preact';
import type { Path } from '../../../contract/routes/path.ts';
import { Confirm } from '../../forms/confirm.tsx';
import { goFromDeleted } from '../../page/recent.ts';
import { href } from '../../page/router.ts';
import { call } from '../../server/client.ts';

export interface DeleteReaderProps {
  fleetId: string;
  what: 'consumer' | 'forwarder';
  path: Path<'/fleets/{fleet_id}/consumers/{name}' | '/fleets/{fleet_id}/forwarders/{name}'>;
  /** Says what goes with it. */
  children: ComponentChildren;
  onClose: () => void;
}

/** Asks before a forwarder or a consumer is deleted with its place in the log. */
export function DeleteReader({ fleetId, what, path, children, onClose }: DeleteReaderProps) {
  return (
    <Confirm
      title={`Delete the ${what}`}
      work={() => call('DELETE', path)}
      onClose={onClose}
      onDone={() => goFromDeleted(href([fleetId, 'consumers']))}
    >
      {children} One that is made again under its name begins anew.
    </Confirm>
  );
}
