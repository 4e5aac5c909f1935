import * as tables from './tables.ts';

/**
 * Migrations of a database: each runs once, in one transaction, in order. A version only adds what the one before it
 * can live with, so that nodes of both run side by side meanwhile.
 *
 * Tables of devices have the device key first, so that an engine that spreads tables over machines keeps a device
 * together. Times are milliseconds since 1970, by the clock of the database. Text keys are ASCII and sort by byte.
 */
export const migrations: readonly string[] = [
  `
  ${tables.value.create()}

  ${tables.device.create()}
  CREATE INDEX device_by_name ON device (left(device, 8) COLLATE "C", name_key, device) WHERE name_key IS NOT NULL;
  CREATE INDEX device_disabled ON device (device) WHERE NOT enabled;
  CREATE INDEX device_retiring ON device (old_secret_until_ms) WHERE old_secret_until_ms IS NOT NULL;

  ${tables.deviceTag.create()}

  ${tables.fleetCount.create()}

  ${tables.activity.create('WITH (fillfactor = 80)')}
  CREATE INDEX activity_by_bucket ON activity (left(device, 8) COLLATE "C", bucket, device);

  ${tables.mailbox.create('WITH (fillfactor = 70)')}
  CREATE INDEX mailbox_waiting ON mailbox (left(device, 8) COLLATE "C", waiting_since_ms, device)
    WHERE waiting_since_ms IS NOT NULL;

  ${tables.mail.create()}
  CREATE INDEX mail_by_expiry ON mail (expires_at_ms);

  ${tables.delayedMail.create()}
  CREATE INDEX delayed_mail_by_time ON delayed_mail (deliver_at_ms, device, mail_id);

  ${tables.receipt.create()}
  CREATE INDEX receipt_by_end ON receipt (settled_at_ms);

  ${tables.deadLetter.create()}
  CREATE INDEX dead_letter_by_end ON dead_letter (died_at_ms);

  -- Locked after all rows of dead letters, in order of fleet.
  CREATE TABLE letter_count (fleet_id text COLLATE "C" PRIMARY KEY, letters bigint NOT NULL);

  ${tables.dedupe.create()}

  ${tables.broadcastMark.create()}

  ${tables.idempotency.create('PARTITION BY RANGE (key)')}

  -- Writers lock its only row last and until the commit: so records become visible in the order of their positions, and
  -- no reader misses one. at_ms: when the last one was stored.
  CREATE TABLE record_end (next bigint NOT NULL, at_ms bigint NOT NULL);
  INSERT INTO record_end VALUES (0, 0);

  ${tables.record.create('PARTITION BY RANGE (stored_at_ms)')}

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

  ${tables.storedRowTable.create()}
  CREATE INDEX stored_by_version ON stored (store, version);
  CREATE TABLE store_version (store text COLLATE "C" PRIMARY KEY, version bigint NOT NULL);

  -- The audit log, in the same database. The entry is JSON as text: input it repeats may hold characters that the JSON
  -- types reject.
  CREATE SEQUENCE audit_number;
  ${tables.audit.create()}
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
  `
  -- The records of one device. Each part of the log that is made from now on has it; those that are there get it from the
  -- trimmer, once nobody writes to them any more, since it would wait for writers and they for it.
  CREATE INDEX record_by_device ON ONLY record (device, position);
  `,
  `
  ${tables.deviceQueue.create('WITH (fillfactor = 70)')}
  ${tables.receipt.alter(3)}
  ${tables.record.alter(3)}
  -- Requests that wait for mail, of which a device has one.
  ALTER TABLE stream ADD COLUMN waits boolean NOT NULL DEFAULT false;
  `,
  `
  -- Bytes of waiting mail, without those from before until it is counted (mail-recount.ts). Whoever changes them holds
  -- the end of the log already, for which all writers wait: locked behind it, in order of fleet, nobody waits for it.
  CREATE TABLE mail_bytes (fleet_id text COLLATE "C" PRIMARY KEY, bytes bigint NOT NULL);
  `,
  `
  ${tables.replaceable.create('WITH (fillfactor = 70)')}
  `,
];
