import { sessionMs, type Token } from '../../declarations/tokens.ts';

/** Says why a token lets nobody in any more: one that is known, or was until lately. */
export function whyEnded({ createdAtMs, expiresAtMs, session }: Token): string {
  if (session === null) return 'This token has expired.';
  const nowMs = Date.now();
  if (expiresAtMs !== null && expiresAtMs <= nowMs) {
    return ended(expiresAtMs < createdAtMs + sessionMs ? 'its token has expired' : '12 h after the login');
  }
  if (session.idleAtMs <= nowMs) return ended('an hour without a request');
  return ended('revoked, or 20 later logins with its token');
}

/** Says why a session is not known whose page still has its key. */
export function whyUnknown(hasCookie: boolean): string {
  return ended(hasCookie ? 'this server does not know it' : '12 h are over, or its cookie was deleted');
}

function ended(why: string): string {
  return `Your session has ended (${why}).`;
}
