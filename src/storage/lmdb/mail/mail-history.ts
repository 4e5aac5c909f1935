import type { DeviceKey } from '../../../core/identity.ts';
import { copyUuid } from '../../../core/uuid.ts';
import { isDeath } from '../../../domain/mail/end-rules.ts';
import type { MailEnd } from '../../../domain/mail/ended-mail.ts';
import type { Fetches } from '../../../domain/mail/mail.ts';
import {
  hasCounts,
  type MailCounts,
  type MailEvent,
  mailEventText,
} from '../../../domain/mail/mail-event.ts';
import { keyOfReceipt } from '../layout/keys.ts';
import { readFetchCount, readFirstFetchedAtMs, readName, readRequeueCount } from '../layout/mail-record.ts';
import { encodeReceipt, readEnd, withFetches } from '../layout/receipt-record.ts';
import type { Tables } from '../layout/tables.ts';
import type { IngestLog } from '../log/ingest-log.ts';
import { encodeLogRecord, encodeTextRecord } from '../log/log-record.ts';
import type { DeadLetters } from './dead-letters.ts';
import type { ReplaceableMails } from './replaceable.ts';

/**
 * Records what happens to mail, in the same transaction: each event in the ingest log, and at its end a receipt (D17)
 * with the device's reply (D31), and, if it died, a dead letter (D16).
 */
export class MailHistory {
  readonly #tables: Pick<Tables, 'receipts' | 'replies'>;
  readonly #letters: DeadLetters;
  readonly #replaceable: ReplaceableMails;
  readonly #log: IngestLog;

  constructor(
    tables: Pick<Tables, 'receipts' | 'replies'>,
    letters: DeadLetters,
    replaceable: ReplaceableMails,
    log: IngestLog,
  ) {
    this.#tables = tables;
    this.#letters = letters;
    this.#replaceable = replaceable;
    this.#log = log;
  }

  /** Logs an event. `mail` is a mail record, here and below; for a mail that dies it includes the payload. */
  note(device: DeviceKey, mail: Buffer, event: MailEvent, newMailId?: Uint8Array): void {
    const counts = hasCounts(event) ? countsOf(mail) : undefined;
    const text = mailEventText(mail, event, counts, newMailId);
    this.#log.append(encodeTextRecord(device, 'receipt', readName(mail), text));
  }

  /** `newMailId`: of the mail that replaces it. */
  end(
    device: DeviceKey,
    mail: Buffer,
    end: MailEnd,
    lifeMs: number,
    { reply, newMailId }: { reply?: Uint8Array | undefined; newMailId?: Uint8Array } = {},
  ): void {
    const mailId = copyUuid(mail);
    this.#tables.receipts.putSync(keyOfReceipt(mailId, device), encodeReceipt(mail, end, lifeMs));
    if (isDeath(end)) this.#letters.put(device, mail, end, lifeMs);
    this.#replaceable.forget(device, mailId);
    this.note(device, mail, end, newMailId);
    if (reply !== undefined) this.#reply(device, mail, reply);
  }

  #reply(device: DeviceKey, mail: Buffer, payload: Uint8Array): void {
    const mailId = copyUuid(mail);
    this.#tables.replies.putSync(keyOfReceipt(mailId, device), Buffer.from(payload));
    const record = { device, kind: 'reply', schema: readName(mail), payload, mailId } as const;
    this.#log.append(encodeLogRecord(record));
  }

  /** How a removed mail ended, while its receipt is retained. */
  endOf(device: DeviceKey, mailId: Uint8Array): MailEnd | undefined {
    const bytes = this.#tables.receipts.getBinaryFast(keyOfReceipt(mailId, device));
    return bytes && readEnd(bytes);
  }

  /**
   * Adds fetches reported after the mail ended, by another connection than the one that ended it. None to a mail that was
   * replaced: its fetch came too late, and was not answered.
   */
  addLateFetches(device: DeviceKey, mailId: Uint8Array, fetches: Fetches): void {
    const bytes = this.#tables.receipts.getBinaryFast(keyOfReceipt(mailId, device));
    if (bytes === undefined || readEnd(bytes) === 'replaced') return;
    const changed = withFetches(bytes, fetches);
    this.#tables.receipts.putSync(keyOfReceipt(mailId, device), changed);
  }
}

function countsOf(mail: Buffer): MailCounts {
  return {
    requeueCount: readRequeueCount(mail),
    fetchCount: readFetchCount(mail),
    firstFetchedAtMs: readFirstFetchedAtMs(mail),
  };
}
