import type { holdRoutes } from '../../contract/server.ts';
import type { DeclaredHold } from '../../declarations/declared-hold.ts';
import type { Handlers } from '../request/routes.ts';
import { timeTextOf } from '../request/times.ts';

/** Handles `/hold`. */
export function holdHandlers({ hold }: { hold: DeclaredHold }): Handlers<typeof holdRoutes> {
  return {
    'GET /hold': async () => ({ held: hold.isHeld, since: timeTextOf(hold.sinceMs) }),
    'DELETE /hold': async ({ audited }) => {
      const released = await hold.release();
      audited.about = { released: String(released) };
      return { released };
    },
  };
}
