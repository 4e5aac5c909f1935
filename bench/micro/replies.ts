import { ApiError } from '../../src/core/errors.ts';
import { formatUuid, generateUuid } from '../../src/core/uuid.ts';
import {
  createMailboxReply,
  errorReply,
  storedReply,
  withMailbox,
} from '../../src/device-api/server/reply.ts';
import { type Group, group, repeated } from './microbench.ts';
import { payload } from './samples.ts';

/** Measures from what a handler knows to what goes out. */
export async function replies(): Promise<Group> {
  const id = generateUuid();
  return group(
    repeated('heartbeat reply', (index) => withMailbox(storedReply, index % 2)),
    repeated('next reply', (index) =>
      createMailboxReply(200, payload, index, [
        ['X-Mail-Name', 'water'],
        ['X-Mail-Id', formatUuid(id)],
      ]),
    ),
    repeated('error reply', (index) =>
      errorReply(new ApiError('mail_not_found', { mailboxSize: index }), false),
    ),
  );
}
