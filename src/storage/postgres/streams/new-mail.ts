import type { DeviceKey } from '../../../core/identity.ts';
import type { Database } from '../connection/database.ts';
import { oneByOne } from '../schema/table.ts';

/** What a mailbox has taken in since its tail was `since`; a row without a mail tells the tail alone. */
const newMail = `
  SELECT k.device, m.tail, m.size, t.sequence, t.mail_id, t.name
  FROM unnest($1::text[], $2::bigint[]) AS k (device, since)
  JOIN mailbox m ON m.device = k.device AND m.tail > k.since
  LEFT JOIN LATERAL (
    SELECT device, sequence, mail_id, name FROM mail
    WHERE device = k.device AND sequence >= k.since AND requeue_count = 0 ${oneByOne}
  ) AS t ON true
  ORDER BY t.device, t.sequence`;

export type NewMail = {
  device: DeviceKey;
  tail: number;
  size: number;
  // Null, as the rest, where only the tail moved on.
  sequence: number | null;
  mail_id: Buffer | null;
  name: string | null;
};

/** In the order in which they came to each device. @throws ApiError unavailable */
export function findNewMail(
  database: Database,
  devices: readonly DeviceKey[],
  tails: readonly number[],
): Promise<NewMail[]> {
  return database.query<NewMail>(newMail, [devices, tails]);
}
