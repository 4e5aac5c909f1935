import type { BroadcastDocument, BroadcastRefusalDocument } from '../../../contract/broadcast.ts';
import { below, type Path } from '../../../contract/routes/path.ts';
import { call } from '../../server/client.ts';
import { DeviceRows, type ReadRows } from './device-rows.tsx';
import { lookSeconds } from './progress.tsx';

const sentences: Readonly<Record<BroadcastRefusalDocument['reason'], string>> = {
  mailbox_full: 'mailbox full',
  delayed_full: 'too many delayed mails',
  fleet_mail_full: 'mail of the fleet full',
  device_not_found: 'no such device',
  not_stored: 'not stored: the shard failed for it',
};

export interface OfBroadcastProps {
  fleetId: string;
  /** Path of the broadcast in the API. */
  path: BroadcastPath;
  broadcast: BroadcastDocument;
}

export type BroadcastPath = Path<'/fleets/{fleet_id}/broadcasts/{broadcast_id}'>;

/** How many did not get it for each reason: `2 mailbox full`. */
export function reasonsText({ reasons }: Pick<BroadcastDocument, 'reasons'>): string {
  return Object.entries(reasons)
    .filter(([, count]) => count > 0)
    .map(([reason, count]) => `${count.toLocaleString('en')} ${sentences[reason as keyof typeof sentences]}`)
    .join(', ');
}

/** Reads the devices that did not get the mail. */
export function readRefusals(path: BroadcastPath): ReadRows<BroadcastRefusalDocument> {
  return (page, signal) => call('GET', below(path, '/refusals', {}), { query: page, signal });
}

/** The devices that did not get the mail, each with its reason. */
export function RefusedDevices({ fleetId, path, broadcast }: OfBroadcastProps) {
  return (
    <DeviceRows
      fleetId={fleetId}
      path={`${path}/refusals`}
      read={readRefusals(path)}
      count={broadcast.refused}
      everySeconds={broadcast.ended_at === null ? lookSeconds(broadcast) : undefined}
      placeOf={({ device_id }) => ['devices', device_id]}
      nameOf={({ name }) => name}
      textOf={({ reason }) => sentences[reason]}
      command={`fleetpost broadcast refusals ${broadcast.broadcast_id} --fleet ${fleetId}`}
    />
  );
}
