import { type DeviceKey, isDeviceKey } from '../../../core/identity.ts';
import type { Announcement } from '../../../domain/mail/mail.ts';
import type { Effects } from '../../../domain/write.ts';
import type { Session } from '../connection/database.ts';

/**
 * Kinds of notification to a node about a device it holds streams of: a letter in front of the device key, or of a
 * stream id.
 */
export const notifications = { mail: 'm', end: 'e', recheck: 'r', displaced: 'd' } as const;
type What = (typeof notifications)[keyof typeof notifications];

/** A new sequence of a mailbox. */
export interface MailboxEvent {
  device: DeviceKey;
  sequence: number;
  /** Announcement of a new mail; undefined for a requeued one, whose sequence is sent only so that none is missed. */
  announcement: Announcement | undefined;
}

type StreamNotification =
  | { what: typeof notifications.mail; event: MailboxEvent }
  | { what: typeof notifications.end | typeof notifications.recheck; device: DeviceKey }
  | { what: typeof notifications.displaced; streamId: string };

/** Notification channel of a node. */
export function channelOf(node: string): string {
  return `fleetpost_${node}`;
}

/** PostgreSQL limits a notification to 8,000 bytes. */
const payloadBytesMax = 7_500;

/**
 * Sends each node that holds streams of these devices one notification with as many events as fit (measured: one per
 * mail cut enqueueing to a third). Runs as late in the transaction as possible: a stream that opens meanwhile polls for
 * itself.
 */
const notify = `
  SELECT pg_notify('fleetpost_' || s.node, string_agg(k.text, ' ' ORDER BY k.ordinal))
  FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (device, text, ordinal)
  CROSS JOIN LATERAL (SELECT DISTINCT t.node FROM stream t WHERE t.device = k.device) AS s
  GROUP BY s.node`;
const noteEnds = `
  INSERT INTO stream_end (at_ms, device, what) SELECT $1, k.device, k.what
  FROM unnest($2::text[], $3::text[]) AS k (device, what) ON CONFLICT DO NOTHING`;

/** The part of a unit of work that streams are notified of. */
interface NotifyingWork {
  readonly effects: Pick<Effects, 'endedStreams' | 'recheckedStreams'>;
  readonly mailboxEvents: readonly MailboxEvent[];
  readonly nowMs: number;
}

/** Adds notifications to a transaction, sent if and when it commits. */
export function notifyStreams(session: Session, { effects, mailboxEvents, nowMs }: NotifyingWork): void {
  const ends: [DeviceKey, What][] = [];
  for (const device of effects.endedStreams) ends.push([device, notifications.end]);
  for (const device of effects.recheckedStreams) ends.push([device, notifications.recheck]);
  if (ends.length > 0) {
    void session.query(noteEnds, [nowMs, ends.map(([device]) => device), ends.map(([, what]) => what)]);
  }
  let batch: [DeviceKey, string][] = [];
  let bytes = 0;
  const send = (): void => {
    if (batch.length > 0)
      void session.query(notify, [batch.map(([device]) => device), batch.map(([, text]) => text)]);
    batch = [];
    bytes = 0;
  };
  const add = (device: DeviceKey, text: string): void => {
    if (bytes + text.length + 1 > payloadBytesMax) send();
    batch.push([device, text]);
    bytes += text.length + 1;
  };
  for (const { device, sequence, announcement } of mailboxEvents) {
    const mail = announcement && [announcement.mailId, announcement.mailboxSize, announcement.name];
    add(device, [notifications.mail + device, sequence, ...(mail ?? [])].join());
  }
  for (const [device, what] of ends) add(device, what + device);
  send();
}

/** Parses a notification; skips unknown words. */
export function readNotifications(payload: string): StreamNotification[] {
  return payload.split(' ').flatMap((word): StreamNotification[] => {
    const [what, text] = [word.slice(0, 1), word.slice(1)];
    if (what === notifications.displaced) return [{ what, streamId: text }];
    if (what === notifications.end || what === notifications.recheck)
      return isDeviceKey(text) ? [{ what, device: text }] : [];
    const [device = '', sequence, mailId, mailboxSize, name = ''] = text.split(',');
    if (what !== notifications.mail || !isDeviceKey(device)) return [];
    const announcement =
      mailId === undefined ? undefined : { mailId, name, mailboxSize: Number(mailboxSize) };
    return [{ what, event: { device, sequence: Number(sequence), announcement } }];
  });
}
