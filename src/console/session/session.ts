import { signal } from '@preact/signals';
import type { SelfDocument } from '../../contract/access/token.ts';
import { pathTo } from '../../contract/routes/path.ts';
import type { Scope } from '../../core/scope.ts';
import { forgetRecents } from '../page/recent.ts';
import { go, href } from '../page/router.ts';
import { CallError } from '../server/call-error.ts';
import { call } from '../server/client.ts';
import {
  access,
  endedBecause,
  endSession,
  keepPageKey,
  leave,
  onOtherTab,
  pageKey,
} from './session-state.ts';

const selfPath = pathTo('/self', {});
/** Pause between attempts to find the session while the server does not answer. */
const pauseMs = 2_000;

export const self = signal<SelfDocument | undefined>(undefined);
/** The session is being made or looked up. */
export const isStarting = signal(true);
/** Why a link did not log in, though one is logged in all the same. */
export const linkRefusal = signal<string | undefined>(undefined);

/** True if the session has the scope; admin has all. */
export function may(scope: Scope): boolean {
  const scopes = self.value?.scopes ?? [];
  return scopes.includes(scope) || scopes.includes('admin');
}

/** The screen that a link leads to: of a fleet, or of a device. */
function placeOf(fragment: URLSearchParams): string {
  const [fleet, device] = [fragment.get('fleet'), fragment.get('device')];
  if (fleet === null) return location.pathname + location.search;
  return href(device === null ? [fleet] : [fleet, 'devices', device]);
}

/**
 * Begins with the login of the address, or goes on with the session that this browser has. A link that is pasted into
 * the open page, and a login or a logout in another tab, are followed.
 */
export async function startSession(): Promise<void> {
  addEventListener('hashchange', () => void followLink());
  onOtherTab((key) => (key === undefined ? leave('You have logged out in another tab.') : void resume()));
  if (!(await followLink())) await resume();
  isStarting.value = false;
}

/** Takes a code or a token out of the address at once, and logs in with it. Returns false if that was not to be. */
async function followLink(): Promise<boolean> {
  if (location.hash === '') return false;
  const fragment = new URLSearchParams(location.hash.slice(1));
  // At once: a secret is not to stay in the address, nor in the history of the tab.
  go(placeOf(fragment), { replace: true });
  const [code, token] = [fragment.get('code'), fragment.get('token')];
  try {
    if (code !== null) await logIn(code);
    else if (token !== null) await logInByToken(token);
    else return false;
    return true;
  } catch (error) {
    linkRefusal.value = endedBecause.value = messageOf(error);
    return false;
  }
}

/** Goes on with the session that this browser has, once the server answers. */
async function resume(): Promise<void> {
  while (pageKey() !== undefined) {
    try {
      enter(await call('GET', selfPath));
      return;
    } catch (error) {
      const isAway = error instanceof CallError && (error.status === 0 || error.status >= 429);
      if (!isAway) {
        // A link that was refused says more than that there is no session.
        endSession(linkRefusal.value ?? messageOf(error));
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }
}

function enter(session: SelfDocument): void {
  self.value = session;
  endedBecause.value = undefined;
  access.value = 'in';
}

/** Trades a login code for a session of this browser. @throws CallError. */
export async function logIn(code: string): Promise<void> {
  const { key, ...session } = await call('POST', pathTo('/console-sessions', {}), {
    body: { code },
    isLogin: true,
  });
  keepPageKey(key);
  linkRefusal.value = undefined;
  // The same as `/self` would answer: the first screen need not wait for that too.
  enter({ kind: 'session', ...session });
}

/** Logs in with an API token, which the page does not keep. @throws CallError. */
export async function logInByToken(token: string): Promise<void> {
  const { code } = await call('POST', pathTo('/console-codes', {}), {
    body: {},
    headers: { Authorization: `Bearer ${token}` },
    isLogin: true,
  });
  await logIn(code);
}

/** Ends the session at the server, forgets it in any case, and says so if the server did not end it. */
export async function logOut(): Promise<void> {
  let outcome = 'You have logged out.';
  try {
    await call('DELETE', selfPath);
  } catch (error) {
    // 401: it had ended.
    if (!(error instanceof CallError && error.status === 401)) {
      outcome = `This browser has forgotten the session, but could not end it at the server: ${messageOf(error)} It ends by itself an hour after its last request, or at once by "fleetpost token revoke ${self.value?.token_id}".`;
    }
  }
  forgetRecents();
  leave(outcome);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
