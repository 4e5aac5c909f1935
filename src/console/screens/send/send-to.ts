import { signal } from '@preact/signals';

/** For whom a mail is written: one device, or those of a broadcast. */
export type Recipient =
  | { deviceId: string }
  | { devices: readonly string[] }
  | { tag: string }
  | { all: true };

/** Whom the drawer of the console writes to; undefined while it is closed. */
export const sendTo = signal<Recipient | undefined>(undefined);

/** Words for the target of a broadcast. */
export function recipientText(recipient: Exclude<Recipient, { deviceId: string }>): string {
  if ('devices' in recipient) return `${recipient.devices.length.toLocaleString('en')} devices`;
  return 'tag' in recipient ? `all with the tag ${recipient.tag}` : 'all devices of the fleet';
}
