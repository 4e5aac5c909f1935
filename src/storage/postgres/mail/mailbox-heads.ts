import type { DeviceKey } from '../../../core/identity.ts';
import type { Mail, MailboxHead } from '../../../domain/mail/mail.ts';
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
