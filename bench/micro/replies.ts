import { built } from '../built.ts';
import { type Group, group, repeated } from './microbench.ts';
import { payload } from './samples.ts';

const { createReply, errorReply, heartbeat } = await built<
  typeof import('../../src/device-api/server/reply.ts')
>('device-api/server/reply.js');
const { ApiError } = await built<typeof import('../../src/core/errors.ts')>('core/errors.js');
const { formatUuid, generateUuid } = await built<typeof import('../../src/core/uuid.ts')>('core/uuid.js');

/** From what a handler knows to what goes out. */
export async function replies(): Promise<Group> {
  const id = generateUuid();
  return group(
    repeated('heartbeat reply', (index) => heartbeat(index % 2 === 0)),
    repeated('next reply', (index) =>
      createReply(200, payload, [
        ['X-Mailbox-Size', String(index)],
        ['X-Mail-Name', 'water'],
        ['X-Mail-Id', formatUuid(id)],
      ]),
    ),
    repeated('error reply', (index) =>
      errorReply(new ApiError('mail_not_found', { mailboxSize: index }), false),
    ),
  );
}
