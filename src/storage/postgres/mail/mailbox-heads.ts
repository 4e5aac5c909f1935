import type { DeviceKey } from '../../../core/identity.ts';
import type { Mail, MailboxFront, MailboxHead, MailFront } from '../../../domain/mail/mail.ts';
import type { Session } from '../connection/database.ts';
import { type MailRow, mail } from '../schema/tables.ts';

export type QueuedRow = Omit<MailRow, 'device'>;
type HeadRow = { size: number | null } & { [C in keyof QueuedRow]: QueuedRow[C] | null };

export const mailColumns = mail.columnsBut('device');
/** Reads from `head` on, so that dead rows in front of it cost nothing. */
const heads = `
  SELECT b.size, t.* FROM unnest($1::text[]) WITH ORDINALITY AS k (device, ordinal)
  LEFT JOIN mailbox b ON b.device = k.device
  LEFT JOIN LATERAL (
    SELECT ${mailColumns} FROM mail t WHERE t.device = b.device AND t.sequence >= b.head
    ORDER BY t.sequence LIMIT 1
  ) AS t ON true
  ORDER BY k.ordinal`;

/** Reads the heads of mailboxes, in the order of the devices, of which one may come twice. */
export async function readHeads(session: Session, devices: readonly DeviceKey[]): Promise<MailboxHead[]> {
  return mail.read(await session.query<HeadRow>(heads, [devices])).map(headOf);
}

/** A front of a mailbox that is wanted. */
export interface WantedFront extends MailFront {
  device: DeviceKey;
}

/** Likewise reads from `head` on; `bytes` counts the payloads up to each mail. */
const fronts = `
  SELECT k.ordinal::integer, b.size, t.* FROM
    unnest($1::text[], $2::integer[], $3::integer[]) WITH ORDINALITY AS k (device, mails_max, bytes_max, ordinal)
  LEFT JOIN mailbox b ON b.device = k.device
  LEFT JOIN LATERAL (
    SELECT * FROM (
      SELECT ${mailColumns}, sum(octet_length(t.payload)) OVER (ORDER BY t.sequence) AS bytes FROM (
        SELECT * FROM mail t WHERE t.device = b.device AND t.sequence >= b.head
        ORDER BY t.sequence LIMIT k.mails_max) AS t) AS t
    WHERE t.bytes <= k.bytes_max
  ) AS t ON true
  ORDER BY k.ordinal, t.sequence`;

/** Reads the fronts of mailboxes, in the order they are wanted in. */
export async function readFronts(session: Session, wanted: readonly WantedFront[]): Promise<MailboxFront[]> {
  const rows = await session.query<HeadRow & { ordinal: number; bytes: number | null }>(fronts, [
    wanted.map(({ device }) => device),
    wanted.map(({ mailsMax }) => mailsMax),
    wanted.map(({ bytesMax }) => bytesMax),
  ]);
  const found: MailboxFront[] = wanted.map(() => ({ size: 0, mails: [] }));
  for (const { ordinal, bytes: _, size, ...row } of mail.read(rows)) {
    const front = found[ordinal - 1];
    if (front === undefined || size === null) continue;
    front.size = size;
    // A left join: all columns are present, or none.
    if (row.sequence !== null) front.mails.push(mailOfRow(row as QueuedRow));
  }
  return found;
}

function headOf({ size, ...found }: HeadRow): MailboxHead {
  if (size === null || size === 0) return { size: 0, mail: undefined };
  if (found.sequence === null) throw new Error('the head of a mailbox is missing');
  // A left join: all columns are present, or none.
  return { size, mail: mailOfRow(found as QueuedRow) };
}

/** The mail of a row. */
export function mailOfRow({ sequence: _, ...found }: QueuedRow): Mail {
  return found;
}
