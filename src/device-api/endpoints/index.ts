import type { Endpoint } from '../server/endpoint.ts';
import { events } from './events.ts';
import { mailboxNext, mailboxNextHead } from './mailbox-next.ts';
import { heartbeatEndpoint, mailboxSize, version } from './own-state.ts';
import { sendDatapoint, sendMessage } from './send.ts';
import { ack, reject, requeue } from './settle.ts';
import { sync } from './sync.ts';

/** The routes of section 4 that need credentials; `GET /` is answered by the server itself. */
export const endpoints: readonly Endpoint[] = [
  version,
  heartbeatEndpoint,
  sendDatapoint,
  sendMessage,
  mailboxSize,
  mailboxNextHead,
  mailboxNext,
  ack,
  reject,
  requeue,
  sync,
  events,
];
