import type { DeviceKey } from '../core/identity.ts';
import { sequenceFrom } from '../shard/mail-sequence.ts';
import type { Session } from './database.ts';
import type { Rows } from './rows.ts';
import type { MailboxRow, MailRow } from './tables.ts';

const columns = `t.device, t.sequence, t.mail_id, t.name, t.payload, t.requeue_count, t.requeues_max, t.fetch_count,
  t.first_fetched_at_ms, t.accepted_at_ms, t.expires_at_ms`;
/** An id ends in the low 32 bits of the sequence that its mail was accepted under. */
const guessed = `
  SELECT ${columns} FROM unnest($1::text[], $2::bytea[], $3::bigint[]) AS k (device, mail_id, sequence)
  JOIN mail t ON t.device = k.device AND t.sequence = k.sequence AND t.mail_id = k.mail_id`;
/** All of a mailbox is looked through: for mail that was requeued, or was given its id long before its place. */
const moved = `
  SELECT ${columns} FROM unnest($1::text[], $2::bytea[]) AS k (device, mail_id)
  JOIN mail t ON t.device = k.device AND t.mail_id = k.mail_id`;

interface Wanted {
  device: DeviceKey;
  mailId: Buffer;
}

/** Finds mails that wait by their ids, for a batch of writes. */
export class MailPlaces {
  readonly #mails: Rows<MailRow>;
  readonly #wanted = new Map<string, Wanted>();
  #found = new Map<string, MailRow>();

  constructor(mails: Rows<MailRow>) {
    this.#mails = mails;
  }

  want(device: DeviceKey, mailId: Uint8Array): void {
    this.#wanted.set(textOf(device, mailId), { device, mailId: Buffer.from(mailId) });
  }

  /** Those that stand where they were accepted. */
  async load(session: Session): Promise<void> {
    const wanted = [...this.#wanted.values()];
    if (wanted.length === 0) return;
    const rows = await session.query<MailRow>(guessed, [
      wanted.map(({ device }) => device),
      wanted.map(({ mailId }) => mailId),
      wanted.map(({ mailId }) => sequenceFrom(1, mailId)),
    ]);
    this.#note(rows);
  }

  /** The rest, in mailboxes that hold any; these are loaded. */
  async loadMoved(session: Session, mailboxes: Rows<MailboxRow>): Promise<void> {
    const wanted = [...this.#wanted].filter(
      ([text, { device }]) => !this.#found.has(text) && (mailboxes.get({ device })?.size ?? 0) > 0,
    );
    this.#wanted.clear();
    if (wanted.length === 0) return;
    const rows = await session.query<MailRow>(moved, [
      wanted.map(([, { device }]) => device),
      wanted.map(([, { mailId }]) => mailId),
    ]);
    this.#note(rows);
  }

  /** Undefined for what waits no more, also since an earlier write of the batch. */
  find(device: DeviceKey, mailId: Uint8Array): MailRow | undefined {
    return this.#found.get(textOf(device, mailId));
  }

  /** Of what a write puts, moves or changes. */
  put(mail: MailRow): void {
    this.#mails.put(mail);
    this.#found.set(textOf(mail.device, mail.mail_id), mail);
  }

  remove(mail: MailRow): void {
    this.#mails.remove(mail);
    this.#found.delete(textOf(mail.device, mail.mail_id));
  }

  #note(rows: readonly MailRow[]): void {
    for (const row of rows) {
      this.#mails.add(row);
      this.#found.set(textOf(row.device, row.mail_id), row);
    }
  }
}

function textOf(device: DeviceKey, mailId: Uint8Array): string {
  return device + Buffer.from(mailId.buffer, mailId.byteOffset, mailId.byteLength).toString('latin1');
}
