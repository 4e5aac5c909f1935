import { replaceKeyPattern } from '../../core/identity.ts';
import { uuidBytesLength } from '../../core/uuid.ts';
import type { Mail } from './mail.ts';

/**
 * Mails of a device that wait, were never fetched, and may be replaced by a newer one of their key (D31). The list is one
 * value, the mail that was sent last first: mail id 16, key length 1, key each. A mail that is in no list may still have a
 * marked id: it was fetched, or displaced by newer ones, or has the mark by chance.
 */

/** Mails of a device that are remembered by their keys: one beyond them stays, whatever comes behind it. */
export const replaceableMailsMax = 64;

interface ReplaceableMail {
  mailId: Buffer;
  key: string;
}

const markAt = 6;
const uuidVersion = 0x70;

/**
 * Marks the id of a mail that may be replaced, by the 12 random bits behind its time. So who hands out mail knows it from
 * the id, and all other mail is read and settled without a look at the list. One id of 4,096 has the mark by chance, which
 * costs a write when its mail is first fetched.
 */
export function markReplaceable(id: Buffer): void {
  id[markAt] = uuidVersion;
  id[markAt + 1] = 0;
}

export function isMarked(id: Uint8Array): boolean {
  return id[markAt + 1] === 0 && id[markAt] === uuidVersion;
}

/** True if no device can have had the mail in hand: a requeue tells of a fetch, too. */
export function isUntouched({
  requeueCount,
  firstFetchedAtMs,
}: Pick<Mail, 'requeueCount' | 'firstFetchedAtMs'>): boolean {
  return requeueCount === 0 && firstFetchedAtMs === undefined;
}

/** True if a fetch of this mail must be stored before it is answered. */
export function mayBeReplaced(mail: Pick<Mail, 'id' | 'requeueCount' | 'firstFetchedAtMs'>): boolean {
  return isMarked(mail.id) && isUntouched(mail);
}

export function mailOfKey(list: Buffer, key: string): Buffer | undefined {
  return mailsIn(list).find((one) => one.key === key)?.mailId;
}

/** Adds a mail, in place of the one of its key. */
export function withMail(list: Buffer, mailId: Buffer, key: string): Buffer {
  const others = mailsIn(list).filter((one) => one.key !== key);
  return encode([{ mailId, key }, ...others.slice(0, replaceableMailsMax - 1)]);
}

/** Undefined if it is not in the list. */
export function withoutMail(list: Buffer, mailId: Uint8Array): Buffer | undefined {
  const all = mailsIn(list);
  const left = all.filter((one) => !one.mailId.equals(mailId));
  return left.length < all.length ? encode(left) : undefined;
}

/** True if the bytes are a valid list. */
export function isReplaceableList(bytes: Buffer): boolean {
  try {
    const mails = decodeReplaceable(bytes);
    const keys = new Set(mails.map(({ key }) => key));
    const isSound = mails.every(({ mailId, key }) => isMarked(mailId) && replaceKeyPattern.test(key));
    return isSound && mails.length > 0 && mails.length <= replaceableMailsMax && keys.size === mails.length;
  } catch {
    return false;
  }
}

/** Of a damaged list nothing is known: its mails stay, and are settled as any other. */
function mailsIn(list: Buffer): ReplaceableMail[] {
  try {
    return decodeReplaceable(list);
  } catch {
    return [];
  }
}

/** @throws RangeError for a damaged list */
export function decodeReplaceable(list: Buffer): ReplaceableMail[] {
  const mails: ReplaceableMail[] = [];
  for (let at = 0; at < list.length; ) {
    const keyAt = at + uuidBytesLength + 1;
    const end = keyAt + list.readUInt8(keyAt - 1);
    if (end > list.length) throw new RangeError('a list of replaceable mails is damaged');
    mails.push({
      mailId: Buffer.from(list.subarray(at, at + uuidBytesLength)),
      key: list.toString('latin1', keyAt, end),
    });
    at = end;
  }
  return mails;
}

function encode(mails: readonly ReplaceableMail[]): Buffer {
  return Buffer.concat(
    mails.flatMap(({ mailId, key }) => [mailId, Buffer.from([key.length]), Buffer.from(key, 'latin1')]),
  );
}
