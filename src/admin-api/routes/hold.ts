import { errorAnswers } from '../../contract/document.ts';
import { holdDocument, releaseDocument } from '../../contract/server.ts';
import type { DeclaredHold } from '../../declarations/declared-hold.ts';
import type { AdminApp, Handler } from '../request/context.ts';
import { routesOf } from '../request/route.ts';
import { timeTextOf } from '../request/times.ts';

interface Needs {
  hold: DeclaredHold;
}

const showing = {
  summary: 'Show whether the server is held',
  description:
    'A held server serves devices, but its forwarders, actions and broadcasts wait, and delayed mail stays delayed.',
  response: { 200: holdDocument, ...errorAnswers },
};

const showHold =
  ({ hold }: Needs): Handler<typeof showing> =>
  async () => ({ held: hold.isHeld, since: timeTextOf(hold.sinceMs) });

const releasing = {
  summary: 'Release a held server',
  description: 'On databases this releases all nodes. Idempotent.',
  response: { 200: releaseDocument, ...errorAnswers },
};

const release =
  ({ hold }: Needs): Handler<typeof releasing> =>
  async ({ audited }) => {
    const released = await hold.release();
    audited.about = { released: String(released) };
    return { released };
  };

/** `/hold`: begins with `serve --paused` or `restore --quiet`, and ends here. */
export function addHoldRoutes(app: AdminApp, context: Needs): void {
  const route = routesOf(app);
  route('GET', '/hold', 'read', showing, showHold(context));
  route('DELETE', '/hold', 'admin', releasing, release(context));
}
