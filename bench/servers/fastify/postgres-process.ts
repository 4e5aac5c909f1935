import pg from 'pg';
import { type AppOptions, type KeyOutcome, type Store, serveApp } from './app.ts';
import { type AdminOptions, addMailRoutes, type MailStore, type QueuedMail, serveAdmin } from './mail.ts';

const options = JSON.parse(process.argv[2] ?? '') as AppOptions & { admin: AdminOptions };
/** Least median of 8, 16 and 32, on two cores; rounds differed by more than these did. */
const connections = 16;
const pool = new pg.Pool({ connectionString: options.socket, max: connections });

/** Each is prepared once on each connection, by its name. */
async function query<Row extends pg.QueryResultRow>(
  name: string,
  text: string,
  ...values: unknown[]
): Promise<readonly Row[]> {
  return (await pool.query<Row>({ name, text, values })).rows;
}

const store: Store = {
  async digest(device) {
    const text = 'SELECT digest FROM devices WHERE device = $1';
    const [row] = await query<{ digest: Buffer }>('digest', text, device);
    return row?.digest;
  },
  async digestAndMailbox(device) {
    const text = `SELECT digest, EXISTS (
      SELECT FROM mails WHERE mails.device = $1 AND acknowledged IS NULL
    ) AS "hasMail" FROM devices WHERE device = $1`;
    const [row] = await query<{ digest: Buffer; hasMail: boolean }>('digestAndMailbox', text, device);
    return row;
  },
  async storeDatapoint(device, schema, payload) {
    const text = 'INSERT INTO datapoints (device, schema, payload) VALUES ($1, $2, $3)';
    await query('storeDatapoint', text, device, schema, payload);
  },
  async storeDatapointOnce(device, schema, payload, key) {
    const text = `INSERT INTO datapoints (device, schema, payload, key) VALUES ($1, $2, $3, $4)
      ON CONFLICT (device, key) WHERE key IS NOT NULL DO NOTHING RETURNING 'stored' AS outcome`;
    const [stored] = await query<{ outcome: KeyOutcome }>(
      'storeDatapointOnce',
      text,
      device,
      schema,
      payload,
      key,
    );
    if (stored) return stored.outcome;
    const found = 'SELECT FROM datapoints WHERE device = $1 AND key = $2 AND schema = $3 AND payload = $4';
    const rows = await query('sameDatapoint', found, device, key, schema, payload);
    return rows.length > 0 ? 'replayed' : 'reused';
  },
  async noteSeen(lastSeenMs) {
    const text = `UPDATE devices SET seen = to_timestamp(notes.ms / 1000.0)
      FROM unnest($1::text[], $2::bigint[]) AS notes (device, ms) WHERE devices.device = notes.device`;
    await query('noteSeen', text, [...lastSeenMs.keys()], [...lastSeenMs.values()]);
  },
};

const mails: MailStore = {
  async queue(device, id, name, payload) {
    const text = `INSERT INTO mails (device, id, name, payload)
      SELECT device, $2::uuid, $3, $4 FROM devices WHERE device = $1 RETURNING id`;
    return (await query('queue', text, device, id, name, payload)).length > 0;
  },
  async next(device) {
    const text = `SELECT id, name, (
      SELECT count(*) FROM mails WHERE device = $1 AND acknowledged IS NULL
    )::int AS size FROM mails WHERE device = $1 AND acknowledged IS NULL ORDER BY id LIMIT 1`;
    const [row] = await query<QueuedMail>('next', text, device);
    return row;
  },
  async acknowledge(device, id) {
    // It stays, so that the same request again is answered as before. The count is of what was before.
    const text = `WITH done AS (
      UPDATE mails SET acknowledged = coalesce(acknowledged, now()) WHERE device = $1 AND id = $2 RETURNING id
    ) SELECT count(*)::int AS size FROM mails
      WHERE device = $1 AND acknowledged IS NULL AND id <> $2 HAVING EXISTS (SELECT FROM done)`;
    const [row] = await query<{ size: number }>('acknowledge', text, device, id);
    return row?.size;
  },
};

await serveAdmin(mails, options.admin);
await serveApp(store, options, (app, authenticate) => addMailRoutes(app, mails, authenticate));
