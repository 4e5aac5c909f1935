/**
 * Migrations of a database: each runs once, in one transaction, in order. A version only adds what the one before it
 * can live with, so that nodes of both run side by side meanwhile.
 *
 * Tables of devices have the device key first, so that an engine that spreads tables over machines keeps a device
 * together. Times are milliseconds since 1970, by the clock of the database. Text keys are ASCII and sort by byte.
 */
export const migrations: readonly string[] = [
  `
  -- Single values: 'forgotten', the time of the latest idempotency key that was dropped; 'moved', where the last record
  -- stands that came from the log of another shard; 'database' and 'databases', the identity of this shard in the store
  -- (shard-identity.ts); and cursors of the log's trimmer by the rules it ran with (record-trimmer.ts).
  CREATE TABLE value (name text PRIMARY KEY, number bigint NOT NULL);

  CREATE TABLE device (
    device text COLLATE "C" PRIMARY KEY,
    enabled boolean NOT NULL,
    -- SHA-256 digests, newest first, concatenated.
    secret_digests bytea NOT NULL,
    old_secret_until_ms bigint,
    name text NOT NULL,
    -- Prefix of the name in UTF-8, for searches; NULL for none.
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

  -- One row per device. bucket: of when it was last seen, 0 for never.
  CREATE TABLE activity (
    device text COLLATE "C" PRIMARY KEY,
    last_seen_ms bigint,
    address bytea,
    bucket bigint NOT NULL
  ) WITH (fillfactor = 80);
  CREATE INDEX activity_by_bucket ON activity (left(device, 8) COLLATE "C", bucket, device);

  -- One row per device: whoever changes the device or its mail locks it first, in order of device.
  CREATE TABLE mailbox (
    device text COLLATE "C" PRIMARY KEY,
    size integer NOT NULL,
    -- No mail has a sequence below head; tail is the next sequence.
    head bigint NOT NULL,
    tail bigint NOT NULL,
    -- When the mail at the head came there; NULL without mail.
    waiting_since_ms bigint,
    delayed integer NOT NULL,
    -- Mail settled last (D15), newest first: mail id 16 and verb 1 byte each.
    settled bytea NOT NULL
  ) WITH (fillfactor = 70);
  CREATE INDEX mailbox_waiting ON mailbox (left(device, 8) COLLATE "C", waiting_since_ms, device)
    WHERE waiting_since_ms IS NOT NULL;

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

  -- Receipts of mail that has ended (D17).
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

  -- Locked after all rows of dead letters, in order of fleet.
  CREATE TABLE letter_count (fleet_id text COLLATE "C" PRIMARY KEY, letters bigint NOT NULL);

  -- Dedupe keys of mail (Enqueue.dedupeKey).
  CREATE TABLE sent (
    once bytea NOT NULL,
    device text COLLATE "C" NOT NULL,
    mail_id bytea NOT NULL,
    PRIMARY KEY (once, device)
  );

  CREATE TABLE broadcast_mark (
    broadcast bytea NOT NULL,
    device text COLLATE "C" NOT NULL,
    mail_id bytea NOT NULL,
    PRIMARY KEY (broadcast, device)
  );

  -- UUIDv7 keys sort by time: partitions are dropped whole.
  CREATE TABLE idempotency (
    key bytea NOT NULL,
    scope text COLLATE "C" NOT NULL,
    digest bytea NOT NULL,
    result bytea NOT NULL,
    PRIMARY KEY (key, scope)
  ) PARTITION BY RANGE (key);

  -- Writers lock its only row last and until the commit: so records become visible in the order of their positions, and
  -- no reader misses one. at_ms: when the last one was stored.
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
    -- When the record itself was stored, if it came from the log of another shard and stands here by the time of newer
    -- ones.
    own_at_ms bigint,
    -- When the device recorded it, where it said so (D25).
    recorded_at_ms bigint,
    PRIMARY KEY (position, stored_at_ms)
  ) PARTITION BY RANGE (stored_at_ms);

  -- Record bytes of fleets with a limit, per partition of the log, as last counted.
  CREATE TABLE record_bytes (
    fleet_id text COLLATE "C" NOT NULL,
    part text NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (fleet_id, part)
  );

  -- Jobs that run on one node at a time.
  CREATE TABLE lease (
    name text COLLATE "C" PRIMARY KEY,
    holder text COLLATE "C" NOT NULL,
    until_ms bigint NOT NULL
  );

  -- Threads that hold event streams, while alive, with the version of their program, and their streams.
  CREATE TABLE node (
    node text COLLATE "C" PRIMARY KEY,
    until_ms bigint NOT NULL,
    version text COLLATE "C" NOT NULL
  );
  CREATE TABLE stream (
    device text COLLATE "C" NOT NULL,
    stream_id bytea NOT NULL,
    node text COLLATE "C" NOT NULL,
    -- Sort key for listing connected devices.
    position text COLLATE "C" NOT NULL,
    PRIMARY KEY (device, stream_id)
  );
  CREATE INDEX stream_by_node ON stream (node);

  -- Devices whose streams had to end or recheck, for nodes that missed the notification; retained for minutes.
  CREATE TABLE stream_end (
    at_ms bigint NOT NULL,
    device text COLLATE "C" NOT NULL,
    what text NOT NULL,
    PRIMARY KEY (at_ms, device, what)
  );

  -- In the first database only, for all nodes: declarations, and cursors of jobs, in the layout of their stores. A
  -- replicated store retains removed rows for a while, without a value; each of its changes has a version, whose row
  -- the writer locks.
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

  -- The audit log, in the same database. The entry is JSON as text: input it repeats may hold characters that the JSON
  -- types reject.
  CREATE SEQUENCE audit_number;
  CREATE TABLE audit (
    number bigint PRIMARY KEY,
    -- Index in auditBooks.
    book smallint NOT NULL,
    -- Owner whose share of the book it uses.
    owner text COLLATE "C" NOT NULL,
    at_ms bigint NOT NULL,
    entry text NOT NULL
  );
  CREATE INDEX audit_by_owner ON audit (book, owner, number);

  -- Calls to the leader, and their answers; for moments, so a crash of the database may lose them. A row without a
  -- request is a cancelled call.
  CREATE UNLOGGED TABLE call (
    call_id bytea PRIMARY KEY,
    caller text COLLATE "C" NOT NULL,
    request bytea,
    -- When the caller gives up.
    until_ms bigint NOT NULL
  );
  CREATE UNLOGGED TABLE call_answer (
    call_id bytea PRIMARY KEY,
    caller text COLLATE "C" NOT NULL,
    answer bytea NOT NULL,
    until_ms bigint NOT NULL
  );
  CREATE INDEX call_answer_by_caller ON call_answer (caller);

  -- Progress of an unfinished copy from a data folder: which copy it is (part ''), and how far each part has come.
  -- Likewise, under other part names, of resharding. A database with a row here is not served.
  CREATE TABLE copy_progress (part text COLLATE "C" PRIMARY KEY, done bytea NOT NULL);
  `,
];
