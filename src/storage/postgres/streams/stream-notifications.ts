import { type DeviceKey, isDeviceKey } from '../../../core/identity.ts';
import type { Announcement } from '../../../domain/mail/mail.ts';
import type { Effects } from '../../../domain/write.ts';
import type { Session } from '../connection/database.ts';

/** What a node is told of a device that it holds streams of: a letter in front of the device's key, or of a stream's id. */
export const notifications = { mail: 'm', end: 'e', recheck: 'r', displaced: 'd' } as const;
type What = (typeof notifications)[keyof typeof notifications];

/** A sequence that a mailbox has given. */
export interface MailboxEvent {
  device: DeviceKey;
  sequence: number;
  /** Of a mail that is new; a requeued one is not announced, and its sequence is told so that none is missed. */
  announcement: Announcement | undefined;
}

type News =
  | { what: typeof notifications.mail; given: MailboxEvent }
  | { what: typeof notifications.end | typeof notifications.recheck; device: DeviceKey }
  | { what: typeof notifications.displaced; streamId: string };

/** The channel of a node: what other nodes have to tell it. */
export function channelOf(node: string): string {
  return `fleetpost_${node}`;
}

/** A notification holds 8,000 bytes. */
const toldBytesMax = 7_500;

/**
 * One notification for each node that holds streams of these devices, for as many of them as it holds (measured: one
 * for each mail cut enqueueing to a third). As late in the transaction as can be: a stream that opens meanwhile looks
 * for itself.
 */
const tell = `
  SELECT pg_notify('fleetpost_' || s.node, string_agg(k.text, ' ' ORDER BY k.ordinal))
  FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (device, text, ordinal)
  CROSS JOIN LATERAL (SELECT DISTINCT t.node FROM stream t WHERE t.device = k.device) AS s
  GROUP BY s.node`;
const noteEnds = `
  INSERT INTO stream_end (at_ms, device, what) SELECT $1, k.device, k.what
  FROM unnest($2::text[], $3::text[]) AS k (device, what) ON CONFLICT DO NOTHING`;

/** What the writes of a transaction have to tell. */
interface Told {
  readonly effects: Pick<Effects, 'endedStreams' | 'recheckedStreams'>;
  readonly given: readonly MailboxEvent[];
  readonly nowMs: number;
}

/** Adds to a transaction what is to be told when it commits, and only then. */
export function notifyStreams(session: Session, { effects, given, nowMs }: Told): void {
  const ends: [DeviceKey, What][] = [];
  for (const device of effects.endedStreams) ends.push([device, notifications.end]);
  for (const device of effects.recheckedStreams) ends.push([device, notifications.recheck]);
  if (ends.length > 0) {
    void session.query(noteEnds, [nowMs, ends.map(([device]) => device), ends.map(([, what]) => what)]);
  }
  let told: [DeviceKey, string][] = [];
  let bytes = 0;
  const send = (): void => {
    if (told.length > 0)
      void session.query(tell, [told.map(([device]) => device), told.map(([, text]) => text)]);
    told = [];
    bytes = 0;
  };
  const add = (device: DeviceKey, text: string): void => {
    if (bytes + text.length + 1 > toldBytesMax) send();
    told.push([device, text]);
    bytes += text.length + 1;
  };
  for (const { device, sequence, announcement } of given) {
    const mail = announcement && [announcement.mailId, announcement.mailboxSize, announcement.name];
    add(device, [notifications.mail + device, sequence, ...(mail ?? [])].join());
  }
  for (const [device, what] of ends) add(device, what + device);
  send();
}

/** What a notification says; what is not one of ours is passed over. */
export function readNotifications(payload: string): News[] {
  return payload.split(' ').flatMap((word): News[] => {
    const [what, text] = [word.slice(0, 1), word.slice(1)];
    if (what === notifications.displaced) return [{ what, streamId: text }];
    if (what === notifications.end || what === notifications.recheck)
      return isDeviceKey(text) ? [{ what, device: text }] : [];
    const [device = '', sequence, mailId, mailboxSize, name = ''] = text.split(',');
    if (what !== notifications.mail || !isDeviceKey(device)) return [];
    const announcement =
      mailId === undefined ? undefined : { mailId, name, mailboxSize: Number(mailboxSize) };
    return [{ what, given: { device, sequence: Number(sequence), announcement } }];
  });
}
