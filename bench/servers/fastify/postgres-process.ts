import pg from 'pg';
import { type AppOptions, type Store, serveApp } from './app.ts';

const options = JSON.parse(process.argv[2] ?? '') as AppOptions;
/** Of 8, 16 and 32 the median was least with it, on two cores; rounds differed by more than these did. */
const connections = 16;
const pool = new pg.Pool({ host: options.socket, user: 'postgres', database: 'postgres', max: connections });

/** Each is prepared once on each connection, by its name. */
const statements = {
  digest: { name: 'digest', text: 'SELECT digest FROM devices WHERE device = $1' },
  digestAndMailbox: {
    name: 'digestAndMailbox',
    text: 'SELECT digest, EXISTS (SELECT FROM mails WHERE mails.device = $1) AS "hasMail" FROM devices WHERE device = $1',
  },
  storeDatapoint: {
    name: 'storeDatapoint',
    text: 'INSERT INTO datapoints (device, schema, payload) VALUES ($1, $2, $3)',
  },
  noteSeen: {
    name: 'noteSeen',
    text: `UPDATE devices SET seen = to_timestamp(notes.ms / 1000.0)
      FROM unnest($1::text[], $2::bigint[]) AS notes (device, ms) WHERE devices.device = notes.device`,
  },
};

const store: Store = {
  async digest(device) {
    const { rows } = await pool.query<{ digest: Buffer }>({ ...statements.digest, values: [device] });
    return rows[0]?.digest;
  },
  async digestAndMailbox(device) {
    const { rows } = await pool.query<{ digest: Buffer; hasMail: boolean }>({
      ...statements.digestAndMailbox,
      values: [device],
    });
    return rows[0];
  },
  async storeDatapoint(device, schema, payload) {
    await pool.query({ ...statements.storeDatapoint, values: [device, schema, payload] });
  },
  async noteSeen(lastSeenMs) {
    const values = [[...lastSeenMs.keys()], [...lastSeenMs.values()]];
    await pool.query({ ...statements.noteSeen, values });
  },
};

await serveApp(store, options);
