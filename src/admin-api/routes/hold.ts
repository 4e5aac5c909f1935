import { errorAnswers } from '../../contract/document.ts';
import { holdDocument, releaseDocument } from '../../contract/server.ts';
import type { AdminApp, AdminContext, Handler } from '../request/context.ts';
import { routesOf } from '../request/route.ts';
import { timeTextOf } from '../request/times.ts';

const showing = {
  summary: 'Show whether the server is held',
  description:
    'A held server serves devices, but its forwarders, actions and broadcasts wait, and delayed mail stays delayed.',
  response: { 200: holdDocument, ...errorAnswers },
};

const showHold =
  ({ hold }: AdminContext): Handler<typeof showing> =>
  async () => ({ held: hold.isHeld, since: timeTextOf(hold.sinceMs) });

const releasing = {
  summary: 'Release a held server',
  description: 'On databases this releases all nodes. Idempotent.',
  response: { 200: releaseDocument, ...errorAnswers },
};

const release =
  ({ hold }: AdminContext): Handler<typeof releasing> =>
  async ({ audited }) => {
    const released = await hold.release();
    audited.about = { released: String(released) };
    return { released };
  };

/** `/hold`: begins with `serve --paused` or `restore --quiet`, and ends here. */
export function addHoldRoutes(app: AdminApp, context: AdminContext): void {
  const route = routesOf(app);
  route('GET', '/hold', 'read', showing, showHold(context));
  route('DELETE', '/hold', 'admin', releasing, release(context));
}
