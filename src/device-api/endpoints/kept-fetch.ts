import type { Awaitable } from '../../core/async.ts';
import { queueFull, unavailable } from '../../core/errors.ts';
import { formatUuid } from '../../core/uuid.ts';
import type { Mail } from '../../domain/mail/mail.ts';
import { mayBeReplaced } from '../../domain/mail/replaceable-mails.ts';
import type { HttpContext } from '../server/context.ts';
import type { DeviceRequest } from '../server/endpoint.ts';

/**
 * Reads of one request after which there is mail again that may be replaced. The fetch of a replaced mail is stored for the one
 * in its place, so that only other changes of the mailbox between two reads bring such mail.
 */
const readsMax = 8;

/** What is read of a mailbox, and the places of the mails whose fetch is stored already. */
interface KeptFetch<R> {
  read: R;
  stored: ReadonlySet<string>;
}

/** Names the place of a mail in its mailbox by what its id ends in, which is the same for the mail that replaces it. */
export function placeOf(mailId: string): string {
  return mailId.slice(-8);
}

/**
 * Stores the fetch of mails that may be replaced, before they are answered (D31): a fetch that is kept in memory is unknown to
 * who replaces a mail, and gone with a crash. Reads the mailbox again until nothing in it can be replaced any more.
 * @throws ApiError unavailable
 */
export async function keepFetch<R>(
  { cached, shard }: DeviceRequest,
  { activity }: HttpContext,
  first: R,
  mailsOf: (read: R) => readonly Mail[],
  readAgain: () => Awaitable<R>,
): Promise<KeptFetch<R>> {
  const stored = new Set<string>();
  let read = first;
  for (let reads = 1; ; reads += 1) {
    const open = mailsOf(read).filter(mayBeReplaced);
    if (open.length === 0) return { read, stored };
    if (reads > readsMax) throw unavailable('The mailbox changes faster than it is read. Retry later.');
    if (!shard.accepts()) throw queueFull();
    await activity.storeFetches(
      cached,
      open.map(({ id }) => id),
    );
    for (const { id } of open) stored.add(placeOf(formatUuid(id)));
    read = await readAgain();
  }
}
