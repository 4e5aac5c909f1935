import type { DeviceKey } from '../../../core/identity.ts';
import { sequenceFrom } from '../../../domain/mail/mail-sequence.ts';
import { isMarked } from '../../../domain/mail/replaceable-mails.ts';
import { rememberedEnd } from '../../../domain/mail/settled-mails.ts';
import { textOfBytes, viewOf } from '../connection/bytes.ts';
import type { Session } from '../connection/database.ts';
import type { RowSet } from '../schema/row-set.ts';
import { oneByOne } from '../schema/table.ts';
import { type MailboxRow, type MailRow, mail as mails } from '../schema/tables.ts';
import type { DatabaseMailBytes } from './mail-bytes.ts';

/** `is_first` tells how far the head of the mailbox moves when the mail is removed. */
const columns = `${mails.columns}, NOT EXISTS (
    SELECT 1 FROM mail e WHERE e.device = t.device AND e.sequence >= b.head AND e.sequence < t.sequence
  ) AS is_first`;
/** Finds mail by the low 32 bits of its original sequence, with which its id ends. */
const guessed = `
  SELECT ${columns} FROM unnest($1::text[], $2::bytea[], $3::bigint[]) AS k (device, mail_id, sequence)
  JOIN mailbox b ON b.device = k.device
  CROSS JOIN LATERAL (
    SELECT * FROM mail m WHERE m.device = k.device AND m.sequence = k.sequence AND m.mail_id = k.mail_id ${oneByOne}
  ) AS t`;
/** Scans the whole mailbox, for mail that was requeued, or got its id long before its sequence. */
const moved = `
  SELECT ${columns} FROM unnest($1::text[], $2::bytea[]) AS k (device, mail_id)
  JOIN mailbox b ON b.device = k.device
  CROSS JOIN LATERAL (
    SELECT * FROM mail m WHERE m.device = k.device AND m.sequence >= b.head AND m.mail_id = k.mail_id ${oneByOne}
  ) AS t`;

/** What stands where mail stood that was replaced, whose id ends in the same sequence. */
const inPlaceOf = `
  SELECT k.mail_id AS replaced_id, ${columns} FROM unnest($1::text[], $2::bytea[], $3::bigint[]) AS k (device, mail_id, sequence)
  JOIN mailbox b ON b.device = k.device
  CROSS JOIN LATERAL (
    SELECT * FROM mail m WHERE m.device = k.device AND m.sequence = k.sequence ${oneByOne}
  ) AS t`;

type FoundRow = MailRow & { is_first: boolean };

interface Wanted {
  device: DeviceKey;
  mailId: Buffer;
}

/**
 * The mail queues of a batch of writes: finds mail by id, and moves it within its mailbox, first in, first out by
 * sequence. Updates the mailbox row too, for which `nowMs` is the time.
 */
export class DatabaseMailQueue {
  readonly #mails: RowSet<MailRow>;
  readonly #mailboxes: RowSet<MailboxRow>;
  readonly #bytes: DatabaseMailBytes;
  readonly #wanted = new Map<string, Wanted>();
  readonly #found = new Map<string, MailRow>();
  /** Ids of the mail in the place of one that was replaced. */
  readonly #replacements = new Map<string, Buffer>();
  /** Sequence of the first mail per mailbox, as far as loaded. */
  readonly #firsts = new Map<DeviceKey, number>();

  constructor(mails: RowSet<MailRow>, mailboxes: RowSet<MailboxRow>, bytes: DatabaseMailBytes) {
    this.#mails = mails;
    this.#mailboxes = mailboxes;
    this.#bytes = bytes;
  }

  /** Includes the mailbox. */
  preload(device: DeviceKey, mailId: Uint8Array): void {
    this.#mailboxes.preload({ device });
    this.#wanted.set(textOfBytes(device, mailId), { device, mailId: viewOf(mailId) });
  }

  /** Loads mail that still has its original sequence, and was not loaded before. */
  async load(session: Session): Promise<void> {
    const wanted = [...this.#wanted].flatMap(([text, one]) => (this.#found.has(text) ? [] : [one]));
    if (wanted.length === 0) return;
    const rows = await session.query<FoundRow>(guessed, [
      wanted.map(({ device }) => device),
      wanted.map(({ mailId }) => mailId),
      wanted.map(({ mailId }) => sequenceFrom(1, mailId)),
    ]);
    this.#note(rows);
  }

  /** Loads the rest, from non-empty mailboxes that do not remember settling it; mailboxes are loaded. */
  async loadMoved(session: Session): Promise<void> {
    const wanted = [...this.#wanted].filter(([text, { device, mailId }]) => {
      const mailbox = this.#mailboxes.get({ device });
      return (
        !this.#found.has(text) && mailbox !== undefined && mailbox.size > 0 && !rememberedEnd(mailbox, mailId)
      );
    });
    this.#wanted.clear();
    if (wanted.length === 0) return;
    const marked = wanted.map(([, one]) => one).filter(({ mailId }) => isMarked(mailId));
    const [rows, replacements] = await Promise.all([
      session.query<FoundRow>(moved, [
        wanted.map(([, { device }]) => device),
        wanted.map(([, { mailId }]) => mailId),
      ]),
      marked.length === 0
        ? []
        : session.query<FoundRow & { replaced_id: Buffer }>(inPlaceOf, [
            marked.map(({ device }) => device),
            marked.map(({ mailId }) => mailId),
            marked.map(({ mailId }) => sequenceFrom(1, mailId)),
          ]),
    ]);
    this.#note(rows);
    for (const { replaced_id: replacedId, ...row } of replacements) {
      if (!isMarked(row.id)) continue;
      this.#replacements.set(textOfBytes(row.device, replacedId), row.id);
      this.#note([row]);
    }
  }

  /** Undefined for mail no longer queued, also since an earlier write of the batch. */
  find(device: DeviceKey, mailId: Uint8Array): MailRow | undefined {
    return this.#found.get(textOfBytes(device, mailId));
  }

  /** The mail that stands where a replaced one stood. */
  findReplacement(device: DeviceKey, replacedId: Uint8Array): MailRow | undefined {
    let id = this.#replacements.get(textOfBytes(device, replacedId));
    for (;;) {
      const next = id && this.#replacements.get(textOfBytes(device, id));
      if (next === undefined) return id && this.find(device, id);
      id = next;
    }
  }

  /** Adds a mail at the tail. */
  add(mailbox: MailboxRow, mail: Omit<MailRow, 'sequence'>, nowMs: number): void {
    this.#put({ ...mail, sequence: mailbox.tail });
    if (mailbox.size === 0) {
      mailbox.head = mailbox.tail;
      mailbox.waitingSinceMs = nowMs;
    }
    mailbox.tail += 1;
    mailbox.size += 1;
    this.#bytes.add(mail.device, mail.payload.length);
    this.#mailboxes.put(mailbox);
  }

  /** Replaces a found mail, keeping its sequence. */
  change(mail: MailRow): void {
    this.#put(mail);
  }

  /** Puts a new mail where a found one stands. */
  replace({ device, id, sequence, payload }: MailRow, mail: Omit<MailRow, 'sequence'>): void {
    this.#found.delete(textOfBytes(device, id));
    this.#replacements.set(textOfBytes(device, id), mail.id);
    this.#bytes.remove(device, payload.length);
    this.#bytes.add(device, mail.payload.length);
    this.#put({ ...mail, sequence });
  }

  moveToTail(mailbox: MailboxRow, mail: MailRow, nowMs: number): void {
    this.remove(mailbox, mail, nowMs);
    this.add(mailbox, mail, nowMs);
  }

  remove(mailbox: MailboxRow, mail: MailRow, nowMs: number): void {
    const { device, sequence } = mail;
    this.#mails.remove(mail);
    this.#found.delete(textOfBytes(device, mail.id));
    mailbox.size -= 1;
    this.#bytes.remove(device, mail.payload.length);
    if (mailbox.size === 0) {
      mailbox.head = mailbox.tail;
      mailbox.waitingSinceMs = undefined;
    } else if (sequence === mailbox.head || sequence === this.#firsts.get(device)) {
      mailbox.head = sequence + 1;
      mailbox.waitingSinceMs = nowMs;
    }
    this.#mailboxes.put(mailbox);
  }

  #put(mail: MailRow): void {
    this.#mails.put(mail);
    this.#found.set(textOfBytes(mail.device, mail.id), mail);
  }

  #note(rows: readonly FoundRow[]): void {
    for (const { is_first, ...mail } of mails.read(rows)) {
      this.#mails.add(mail);
      this.#found.set(textOfBytes(mail.device, mail.id), mail);
      if (is_first) this.#firsts.set(mail.device, mail.sequence);
    }
  }
}
