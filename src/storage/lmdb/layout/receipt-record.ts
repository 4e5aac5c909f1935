import type { RecordOf } from '../../../domain/fields.ts';
import type { MailEnd, Receipt } from '../../../domain/mail/ended-mail.ts';
import { firstFetchMs } from '../../../domain/mail/fetch-rules.ts';
import type { Fetches } from '../../../domain/mail/mail.ts';
import { receiptFields } from '../../../domain/mail/mail-fields.ts';
import { copyOf, mailLayout, readAcceptedAtMs } from './mail-record.ts';
import { RecordLayout } from './record-layout.ts';

/** Queued and settled are in shard life time, as in a mail. */
const layout = new RecordLayout<typeof receiptFields>('receipt', receiptFields);

export const { encode: encodeStoredReceipt, decode: decodeStoredReceipt } = layout;

const { read, write } = layout;

const fromMail = layout.encoderFrom<
  (mail: Buffer, own: Pick<RecordOf<typeof receiptFields>, 'state' | 'queuedAtMs' | 'settledAtMs'>) => Buffer
>(mailLayout, ['state', 'queuedAtMs', 'settledAtMs']);

export function encodeReceipt(mail: Buffer, end: MailEnd, settledAtMs: number): Buffer {
  return fromMail(mail, { state: end, queuedAtMs: readAcceptedAtMs(mail), settledAtMs });
}

/** Copies a receipt with more fetches, which may be reported after the end. */
export function withFetches(bytes: Buffer, fetches: Fetches): Buffer {
  const copy = copyOf(bytes);
  write.fetchCount(copy, read.fetchCount(copy) + fetches.count);
  write.firstFetchedAtMs(copy, firstFetchMs(read.firstFetchedAtMs(copy), fetches));
  return copy;
}

export function readEnd(bytes: Buffer): MailEnd {
  layout.check(bytes);
  return read.state(bytes);
}

/** The time of settlement; 0, the oldest, for a damaged record. */
export function readSettledAtMs(bytes: Buffer): number {
  return bytes.length < layout.fixedBytes ? 0 : read.settledAtMs(bytes);
}

/** Decodes a receipt, with all times but the first fetch in shard life time. @throws Error for a damaged record. */
export function decodeReceipt(bytes: Buffer): Omit<Receipt, 'device' | 'mailId' | 'reply'> {
  return { deliverAtMs: undefined, expiresAtMs: undefined, ...layout.decode(bytes) };
}

/** True if the bytes can be a receipt. */
export function isReceiptRecord(bytes: Buffer): boolean {
  return layout.isRecord(bytes);
}
