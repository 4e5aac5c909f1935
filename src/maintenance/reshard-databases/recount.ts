import type { Database } from '../../storage/postgres/connection/database.ts';

const counts = [
  // A fleet that has no device here any more keeps a row that says so.
  'UPDATE fleet_count SET devices = 0, disabled = 0',
  `INSERT INTO fleet_count (fleet_id, devices, disabled)
   SELECT left(device, 8), count(*), count(*) FILTER (WHERE NOT enabled) FROM device GROUP BY 1
   ON CONFLICT (fleet_id) DO UPDATE SET devices = excluded.devices, disabled = excluded.disabled`,
  'UPDATE letter_count SET letters = 0',
  `INSERT INTO letter_count (fleet_id, letters) SELECT fleet_id, count(*) FROM dead_letter GROUP BY 1
   ON CONFLICT (fleet_id) DO UPDATE SET letters = excluded.letters`,
  // Else statements would be planned for what was there before.
  'ANALYZE',
];

/** What is counted of a database, of what is in it now, while nobody serves it. To do it again changes nothing. */
export async function recount(database: Database): Promise<void> {
  for (const text of counts) await database.query(text);
}
