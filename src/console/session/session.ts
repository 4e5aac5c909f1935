import { signal } from '@preact/signals';
import type { SelfDocument } from '../../contract/access/token.ts';
import { pathTo } from '../../contract/routes/path.ts';
import type { Scope } from '../../core/scope.ts';
import { go, href } from '../page/router.ts';
import { CallError, call, endSession, token } from '../server/client.ts';

const kept = 'fleetpost.session';
const selfPath = pathTo('/self', {});

export const self = signal<SelfDocument | undefined>(undefined);
/** The session is being made or looked up. */
export const isStarting = signal(true);

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
 * Begins with the login code of the address, which is taken out of it at once, or goes on with the session that this
 * tab had before it was loaded again.
 */
export async function startSession(): Promise<void> {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const code = fragment.get('code');
  // At once: a code is of no use twice, but none of it needs to stay in the history.
  if (location.hash !== '') go(placeOf(fragment), { replace: true });
  try {
    if (code !== null) await logIn(code);
    else {
      token.value = sessionStorage.getItem(kept) ?? undefined;
      if (token.value !== undefined) self.value = await call('GET', selfPath);
    }
  } catch (error) {
    // A server that does not answer now may do so later: the session is kept for that.
    endSession(error instanceof Error ? error.message : String(error));
  }
  isStarting.value = false;
}

/** Trades a login code for the session of this tab. @throws CallError. */
export async function logIn(code: string): Promise<void> {
  const made = await call('POST', pathTo('/console-sessions', {}), { body: { code } });
  const { token: secret, ...session } = made;
  sessionStorage.setItem(kept, secret);
  // The same as `/self` would answer: the first screen need not wait for that too.
  self.value = { kind: 'session', ...session };
  token.value = secret;
}

/** Ends the session at the server, forgets it in any case, and says so if the server did not end it. */
export async function logOut(): Promise<void> {
  let outcome = 'You have logged out.';
  try {
    await call('DELETE', selfPath);
  } catch (error) {
    // 401: it had ended.
    if (!(error instanceof CallError && error.status === 401)) {
      const reason = error instanceof Error ? error.message : String(error);
      outcome = `This tab has forgotten the session, but could not end it at the server: ${reason} It ends by itself an hour after its last request, or at once by "fleetpost token revoke ${self.value?.token_id}".`;
    }
  }
  sessionStorage.removeItem(kept);
  endSession(outcome);
}
