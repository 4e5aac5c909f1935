import { signal } from '@preact/signals';
import { type DeviceSelection, devicesText, isWholeFleet } from '../devices/selection.ts';

/** For whom a mail is written: one device, or those of a broadcast. `mail`: one that was sent before. */
export type Recipient = ({ deviceId: string } | DeviceSelection) & {
  mail?: { name: string; payload: string };
};

/** Whom the drawer of the console writes to; undefined while it is closed. */
export const sendTo = signal<Recipient | undefined>(undefined);

/** Counts the broadcasts that were started in this page: their list is read again after each. */
export const startedBroadcasts = signal(0);

/** Words for the target of a broadcast. */
export function recipientText(selection: DeviceSelection): string {
  if ('ids' in selection) return devicesText(selection.ids.length);
  return isWholeFleet(selection) ? 'all devices of the fleet' : `all that fit ${selection.text}`;
}
