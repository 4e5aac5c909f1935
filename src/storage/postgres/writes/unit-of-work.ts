import { type DeviceKey, deviceKeyLength } from '../../../core/identity.ts';
import { generateUuid } from '../../../core/uuid.ts';
import { senderMark } from '../../../domain/idempotency.ts';
import type { MailboxFront, MailboxHead, MailFront } from '../../../domain/mail/mail.ts';
import type { RecordKind } from '../../../domain/records/record.ts';
import type { Effects } from '../../../domain/write.ts';
import type { Session } from '../connection/database.ts';
import { databaseTimeMs } from '../connection/database-time.ts';
import { FleetCountChanges, SeenNotes } from '../devices/seen-notes.ts';
import { DatabaseDeadLetters } from '../mail/dead-letters.ts';
import { KeyClaims } from '../mail/key-claims.ts';
import { DatabaseMailBytes } from '../mail/mail-bytes.ts';
import { DatabaseMailQueue } from '../mail/mail-queue.ts';
import { readFronts, readHeads, type WantedFront } from '../mail/mailbox-heads.ts';
import { DatabaseReplaceable } from '../mail/replaceable.ts';
import { RowSet } from '../schema/row-set.ts';
import * as tables from '../schema/tables.ts';
import type { MailboxEvent } from '../streams/stream-notifications.ts';

/** A record to be appended to the log. */
interface NewRecord {
  device: DeviceKey;
  kind: RecordKind;
  schema: string;
  payload: Uint8Array;
  recordedAtMs?: number;
  mailId?: Uint8Array;
}

/**
 * Times only grow with positions, which allows a binary search, although transactions overtake each other by some
 * seconds. A clock set back by more is followed. The id contains the stored time (RFC 9562, 5.7).
 */
const appendRecords = `
  WITH ended AS (
    UPDATE record_end SET next = next + $1,
      at_ms = CASE WHEN at_ms > $2::bigint AND at_ms < $2::bigint + 60000 THEN at_ms ELSE $2::bigint END
    RETURNING next - $1 AS first, at_ms)
  INSERT INTO record (position, stored_at_ms, id, device, kind, schema, payload, recorded_at_ms, mail_id)
  SELECT ended.first + k.ordinal - 1, ended.at_ms, substr(int8send(ended.at_ms << 16), 1, 6) || substr(k.id, 7), k.device, k.kind, k.schema, k.payload, k.recorded_at_ms, k.mail_id
  FROM ended, unnest($3::bytea[], $4::text[], $5::text[], $6::text[], $7::bytea[], $8::bigint[], $9::bytea[])
    WITH ORDINALITY AS k (id, device, kind, schema, payload, recorded_at_ms, mail_id, ordinal)`;

/**
 * The rows that a batch of writes preloads, reads and changes in memory, and the records it appends, for one
 * transaction. Writes apply one after another, each to the result of the one before.
 */
export class UnitOfWork {
  /** Effects after the commit. */
  readonly effects: Omit<Effects, 'announcements' | 'changed'> = {
    endedStreams: [],
    recheckedStreams: [],
    droppedLetters: 0,
  };
  /** Mailbox events, in the order of their sequences. */
  readonly mailboxEvents: MailboxEvent[] = [];
  readonly mailboxes = new RowSet(tables.mailbox);
  readonly mails = new RowSet(tables.mail);
  readonly mailBytes = new DatabaseMailBytes();
  /** Mail preloaded by id. */
  readonly mailQueue = new DatabaseMailQueue(this.mails, this.mailboxes, this.mailBytes);
  readonly delayed = new RowSet(tables.delayedMail);
  readonly replaceable = new DatabaseReplaceable();
  readonly receipts = new RowSet(tables.receipt);
  readonly letters = new DatabaseDeadLetters(this.effects);
  readonly dedupe = new RowSet(tables.dedupe);
  readonly marks = new RowSet(tables.broadcastMark);
  readonly keys = new RowSet(tables.idempotency);
  readonly queues = new RowSet(tables.deviceQueue);
  readonly values = new RowSet(tables.value);
  readonly devices = new RowSet(tables.device);
  readonly tags = new RowSet(tables.deviceTag);
  readonly activity = new RowSet(tables.activity);
  readonly counts = new FleetCountChanges();
  readonly seen = new SeenNotes();
  readonly claims = new KeyClaims();
  /** Time by the database clock, the same for all nodes. */
  nowMs = 0;
  readonly #records: NewRecord[] = [];
  readonly #heads: { device: DeviceKey; answer: { head?: MailboxHead | undefined } }[] = [];
  readonly #fronts: (WantedFront & { answer: { mailbox: MailboxFront | undefined } })[] = [];

  /**
   * Loads all preloaded rows, in two waves, or three where mail is replaced. Mailboxes are locked before any row of
   * their devices is read, so that what is read holds until the commit.
   */
  async load(session: Session): Promise<void> {
    const [nowMs] = await Promise.all([
      databaseTimeMs(session),
      this.mailboxes.load(session, true),
      this.mailQueue.load(session),
      ...[this.devices, this.tags, this.activity, this.delayed, this.replaceable, this.receipts].map((rows) =>
        rows.load(session),
      ),
      ...[this.letters, this.dedupe, this.marks, this.keys, this.queues, this.values].map((rows) =>
        rows.load(session),
      ),
      this.claims.load(session),
      this.mailBytes.load(session),
    ]);
    this.nowMs = nowMs;
    this.#wantRepeated();
    await this.#loadReplaced(session);
    await Promise.all([this.mailQueue.loadMoved(session), this.delayed.load(session)]);
  }

  /** For mail sent before, also loads whether it is still delayed. */
  #wantRepeated(): void {
    for (const { device, mail_id: id } of this.dedupe.all()) this.delayed.preload({ device, id });
    for (const { scope, result } of this.keys.all()) {
      if (scope.length !== deviceKeyLength + senderMark.length) continue;
      this.delayed.preload({ device: scope.slice(0, deviceKeyLength) as DeviceKey, id: result });
    }
  }

  /** Loads the mails that are to be replaced, which only the lists of their devices name. */
  async #loadReplaced(session: Session): Promise<void> {
    const wanted = this.replaceable.takeWanted();
    if (wanted.length === 0) return;
    for (const { device, mailId } of wanted) {
      this.mailQueue.preload(device, mailId);
      this.delayed.preload({ device, id: mailId });
    }
    await this.mailQueue.load(session);
  }

  /** Adds the head of a mailbox to an answer, once all writes of the transaction are made. */
  wantHead(device: DeviceKey, answer: { head?: MailboxHead | undefined }): void {
    this.#heads.push({ device, answer });
  }

  /** Likewise the front of a mailbox. */
  wantFront(device: DeviceKey, front: MailFront, answer: { mailbox: MailboxFront | undefined }): void {
    this.#fronts.push({ device, ...front, answer });
  }

  /**
   * Reads what is wanted of mailboxes: to be sent behind `store`, along with the commit, at no round trip of its own. Never
   * rejects: a statement that fails fails the commit, and a settlement that is done may be answered without a head.
   */
  async readMailboxes(session: Session): Promise<void> {
    const wantedHeads = this.#heads;
    const wantedFronts = this.#fronts;
    const [heads, fronts] = await Promise.all([
      wantedHeads.length === 0
        ? []
        : readHeads(
            session,
            wantedHeads.map(({ device }) => device),
          ).catch(() => []),
      wantedFronts.length === 0 ? [] : readFronts(session, wantedFronts).catch(() => []),
    ]);
    for (const [index, { answer }] of wantedHeads.entries()) answer.head = heads[index];
    for (const [index, { answer }] of wantedFronts.entries()) answer.mailbox = fronts[index];
  }

  append(record: NewRecord): void {
    this.#records.push(record);
  }

  /**
   * Writes all changes, always in the same order: the end of the log is locked last and shortest, and behind it, where
   * nobody has to wait for them, the bytes of mail.
   */
  store(session: Session): void {
    for (const rows of [
      this.devices,
      this.tags,
      this.activity,
      this.seen,
      this.counts,
      this.mailboxes,
      this.mails,
      this.delayed,
      this.replaceable,
      this.receipts,
      this.dedupe,
      this.marks,
      this.keys,
      this.queues,
      this.letters,
    ]) {
      rows.store(session);
    }
    this.#storeRecords(session);
    this.mailBytes.store(session);
  }

  #storeRecords(session: Session): void {
    if (this.#records.length === 0) return;
    const records = this.#records;
    void session.query(appendRecords, [
      records.length,
      this.nowMs,
      records.map(() => generateUuid(this.nowMs)),
      records.map(({ device }) => device),
      records.map(({ kind }) => kind),
      records.map(({ schema }) => schema),
      records.map(({ payload }) => payload),
      records.map(({ recordedAtMs }) => recordedAtMs ?? null),
      records.map(({ mailId }) => mailId ?? null),
    ]);
  }
}
