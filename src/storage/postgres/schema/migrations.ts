/**
 * The tables of a database, in versions: each is run once, in one transaction, in order. A version only adds what
 * the one before it can live with, so that nodes of both run side by side while it is done.
 *
 * What belongs to a device has its key in front, so that an engine that spreads tables over machines keeps it
 * together. Times are milliseconds since 1970, by the clock of the database. Text keys are ASCII and sort by byte.
 */
export const migrations: readonly string[] = [
  `
  -- The values that there is one of: 'forgotten', the time of the latest idempotency key that was forgotten; 'moved',
  -- where the last record stands that came from the log of another shard; 'database' and 'databases', which one of how
  -- many of the store this is (place.ts); and how far the log was looked through (record-trimmer.ts), by the rules that
  -- it was looked through by.
  CREATE TABLE value (name text PRIMARY KEY, number bigint NOT NULL);

  CREATE TABLE device (
    device text COLLATE "C" PRIMARY KEY,
    enabled boolean NOT NULL,
    -- SHA-256, newest first, behind each other.
    secret_digests bytea NOT NULL,
    old_secret_until_ms bigint,
    name text NOT NULL,
    -- The beginning of the name, in UTF-8, as it is searched by; NULL for none.
    name_key bytea,
    tags jsonb NOT NULL,
    created_at_ms bigint NOT NULL
  );
  CREATE INDEX device_by_name ON device (left(device, 8) COLLATE "C", name_key, device) WHERE name_key IS NOT NULL;
  CREATE INDEX device_disabled ON device (device) WHERE NOT enabled;
  CREATE INDEX device_retiring ON device (old_secret_until_ms) WHERE old_secret_until_ms IS NOT NULL;

  CREATE TABLE device_tag (
    fleet_id text COLLATE "C" NOT NULL,
    tag text COLLATE "C" NOT NULL,
    device text COLLATE "C" NOT NULL,
    PRIMARY KEY (fleet_id, tag, device)
  );

  CREATE TABLE fleet_count (
    fleet_id text COLLATE "C" PRIMARY KEY,
    devices bigint NOT NULL,
    disabled bigint NOT NULL
  );

  -- Each device has its row. The bucket is that of its last sight, 0 for none.
  CREATE TABLE activity (
    device text COLLATE "C" PRIMARY KEY,
    last_seen_ms bigint,
    address bytea,
    bucket bigint NOT NULL
  ) WITH (fillfactor = 80);
  CREATE INDEX activity_by_bucket ON activity (left(device, 8) COLLATE "C", bucket, device);

  -- Each device has its row: whoever changes its mail or itself locks that first, in order of device.
  CREATE TABLE mailbox (
    device text COLLATE "C" PRIMARY KEY,
    size integer NOT NULL,
    -- No mail has a sequence below head; tail is the next to be given.
    head bigint NOT NULL,
    tail bigint NOT NULL,
    delayed integer NOT NULL,
    -- The mails settled last (D15), newest first: mail id 16 and verb 1 byte each.
    settled bytea NOT NULL
  ) WITH (fillfactor = 70);

  CREATE TABLE mail (
    device text COLLATE "C" NOT NULL,
    sequence bigint NOT NULL,
    mail_id bytea NOT NULL,
    name text NOT NULL,
    payload bytea NOT NULL,
    requeue_count integer NOT NULL,
    requeues_max smallint,
    fetch_count integer NOT NULL,
    first_fetched_at_ms bigint,
    accepted_at_ms bigint NOT NULL,
    expires_at_ms bigint NOT NULL,
    PRIMARY KEY (device, sequence)
  );
  CREATE INDEX mail_by_expiry ON mail (expires_at_ms);

  CREATE TABLE delayed_mail (
    device text COLLATE "C" NOT NULL,
    mail_id bytea NOT NULL,
    deliver_at_ms bigint NOT NULL,
    ttl_seconds bigint NOT NULL,
    mailbox_mails_max integer NOT NULL,
    name text NOT NULL,
    payload bytea NOT NULL,
    requeues_max smallint,
    PRIMARY KEY (device, mail_id)
  );
  CREATE INDEX delayed_mail_by_time ON delayed_mail (deliver_at_ms, device, mail_id);

  -- Of mail that has ended (D17).
  CREATE TABLE receipt (
    device text COLLATE "C" NOT NULL,
    mail_id bytea NOT NULL,
    state text NOT NULL,
    name text NOT NULL,
    queued_at_ms bigint,
    fetch_count integer NOT NULL,
    first_fetched_at_ms bigint,
    requeue_count integer NOT NULL,
    settled_at_ms bigint NOT NULL,
    PRIMARY KEY (device, mail_id)
  );
  CREATE INDEX receipt_by_end ON receipt (settled_at_ms);

  CREATE TABLE dead_letter (
    fleet_id text COLLATE "C" NOT NULL,
    mail_id bytea NOT NULL,
    device text COLLATE "C" NOT NULL,
    reason text NOT NULL,
    died_at_ms bigint NOT NULL,
    name text NOT NULL,
    payload bytea NOT NULL,
    queued_at_ms bigint,
    fetch_count integer NOT NULL,
    first_fetched_at_ms bigint,
    requeue_count integer NOT NULL,
    requeues_max smallint,
    PRIMARY KEY (fleet_id, mail_id, device)
  );
  CREATE INDEX dead_letter_by_end ON dead_letter (died_at_ms);

  -- Locked behind all rows of dead letters, in order of fleet.
  CREATE TABLE letter_count (fleet_id text COLLATE "C" PRIMARY KEY, letters bigint NOT NULL);

  -- What mail was sent for (Enqueue.once).
  CREATE TABLE sent (
    once bytea NOT NULL,
    device text COLLATE "C" NOT NULL,
    mail_id bytea NOT NULL,
    PRIMARY KEY (once, device)
  );

  CREATE TABLE broadcast_mark (
    broadcast bytea NOT NULL,
    device text COLLATE "C" NOT NULL,
    PRIMARY KEY (broadcast, device)
  );

  -- UUIDv7 sort by their time: partitions by it are dropped whole.
  CREATE TABLE idempotency (
    key bytea NOT NULL,
    scope text COLLATE "C" NOT NULL,
    digest bytea NOT NULL,
    result bytea NOT NULL,
    PRIMARY KEY (key, scope)
  ) PARTITION BY RANGE (key);

  -- Its one row is locked last of all by whoever appends, and holds until the commit: so records become visible in
  -- the order of their positions, and no reader misses one. at_ms: when the last one was stored.
  CREATE TABLE record_end (next bigint NOT NULL, at_ms bigint NOT NULL);
  INSERT INTO record_end VALUES (0, 0);

  CREATE TABLE record (
    position bigint NOT NULL,
    stored_at_ms bigint NOT NULL,
    id bytea NOT NULL,
    device text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    schema text NOT NULL,
    payload bytea NOT NULL,
    -- When it was stored itself, if it came from the log of another shard, and stands here by the time of newer ones.
    own_at_ms bigint,
    PRIMARY KEY (position, stored_at_ms)
  ) PARTITION BY RANGE (stored_at_ms);

  -- Bytes of the records of fleets that have a limit, in each part of the log, as far as they were counted.
  CREATE TABLE record_bytes (
    fleet_id text COLLATE "C" NOT NULL,
    part text NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (fleet_id, part)
  );

  -- Jobs that one node does for all.
  CREATE TABLE lease (
    name text COLLATE "C" PRIMARY KEY,
    holder text COLLATE "C" NOT NULL,
    until_ms bigint NOT NULL
  );

  -- Each thread that holds event streams, as long as it lives, and what streams it holds.
  CREATE TABLE node (node text COLLATE "C" PRIMARY KEY, until_ms bigint NOT NULL);
  CREATE TABLE stream (
    device text COLLATE "C" NOT NULL,
    stream_id bytea NOT NULL,
    node text COLLATE "C" NOT NULL,
    -- As connected devices are listed.
    position text COLLATE "C" NOT NULL,
    PRIMARY KEY (device, stream_id)
  );
  CREATE INDEX stream_by_node ON stream (node);

  -- Devices whose streams had to end or to look again, for nodes that a notification did not reach; for minutes.
  CREATE TABLE stream_end (
    at_ms bigint NOT NULL,
    device text COLLATE "C" NOT NULL,
    what text NOT NULL,
    PRIMARY KEY (at_ms, device, what)
  );

  -- In the first database alone, for all nodes: what operators declare, and how far jobs have come, as the stores of
  -- those rooms lay it out. A store that nodes follow keeps what was removed for a while, without a value, and each
  -- change of it has a version; its row is locked by whoever changes it.
  CREATE TABLE stored (
    store text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    key bytea NOT NULL,
    value bytea,
    version bigint NOT NULL,
    at_ms bigint NOT NULL,
    PRIMARY KEY (store, name, key)
  );
  CREATE INDEX stored_by_version ON stored (store, version);
  CREATE TABLE store_version (store text COLLATE "C" PRIMARY KEY, version bigint NOT NULL);

  -- The audit log, in the same database. The entry is JSON, as text: what it repeats of the outside may hold
  -- characters that the types of JSON do not take.
  CREATE SEQUENCE audit_number;
  CREATE TABLE audit (
    number bigint PRIMARY KEY,
    -- Its place among auditBooks.
    book smallint NOT NULL,
    -- Whose share of the book it has.
    owner text COLLATE "C" NOT NULL,
    at_ms bigint NOT NULL,
    entry text NOT NULL
  );
  CREATE INDEX audit_by_owner ON audit (book, owner, number);

  -- What a node asks of the one that has the jobs, and what it is answered; for moments, so that a crash of the
  -- database may forget them. Without a request: whoever asked does not wait any more.
  CREATE UNLOGGED TABLE call (
    call_id bytea PRIMARY KEY,
    caller text COLLATE "C" NOT NULL,
    request bytea,
    -- Then its caller has given it up.
    until_ms bigint NOT NULL
  );
  CREATE UNLOGGED TABLE call_answer (
    call_id bytea PRIMARY KEY,
    caller text COLLATE "C" NOT NULL,
    answer bytea NOT NULL,
    until_ms bigint NOT NULL
  );
  CREATE INDEX call_answer_by_caller ON call_answer (caller);

  -- Of a copy from a data folder that has not come to its end: which copy it is (part ''), and how far each part of it
  -- has come. Likewise, under parts of other names, of devices that are being moved to other databases. A database
  -- with a row here is not served.
  CREATE TABLE copy_progress (part text COLLATE "C" PRIMARY KEY, done bytea NOT NULL);
  `,
];
