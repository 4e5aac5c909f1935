import { type consoleCodeRoutes, consoleSessionRoutes } from '../../contract/access/login.ts';
import { ApiError, rateLimited } from '../../core/errors.ts';
import { RateLimiter } from '../../core/limits/rate-limiter.ts';
import type { Registry } from '../../declarations/registry.ts';
import type { Token } from '../../declarations/tokens.ts';
import { type Bearers, bearerOf, hasEnded } from '../auth/authorization.ts';
import { setCookie } from '../auth/session-cookie.ts';
import type { AdminApp } from '../request/admin-app.ts';
import { addRoutes, type HandlerOf, type Handlers } from '../request/routes.ts';
import type { Principal } from '../request/scope.ts';
import { timeTextOf } from '../request/times.ts';
import { isOfOwnPage } from '../server/host-check.ts';
import { browserName } from './browser-name.ts';
import type { ConsoleCodes } from './console-codes.ts';

interface CodeParts {
  consoleCodes: ConsoleCodes;
  registry: Registry;
}

/** Refused codes a second over all clients, and the burst of them. A code that is right always passes. */
const refusalsPerSecondMax = 5;
const refusalBurstSeconds = 4;

const createCode =
  ({ consoleCodes, registry }: CodeParts): HandlerOf<typeof consoleCodeRoutes, 'POST /console-codes'> =>
  async ({ principal, body, audited }, reply) => {
    if (principal === null) throw new Error('this route needs a token');
    if (principal.kind === 'session') {
      // It would outlive the hours of its own.
      const msg = 'A session of the console makes no other. Run: fleetpost console.';
      throw new ApiError('forbidden', { msg });
    }
    const scopes = body.scopes ?? principal.scopes;
    const fleetId = body.fleet_id ?? principal.fleetId;
    const isLess =
      principal.scopes.includes('admin') || scopes.every((one) => principal.scopes.includes(one));
    if (!isLess) throw new ApiError('forbidden', { msg: 'A session has no scope that its token lacks.' });
    if (principal.fleetId !== null && fleetId !== principal.fleetId) {
      throw new ApiError('forbidden', { msg: 'This token is for another fleet.' });
    }
    if (fleetId !== null) registry.fleet(fleetId);
    const { code, expiresAtMs } = consoleCodes.create({ ...principal, scopes, fleetId });
    audited.about = { scopes: scopes.join(','), token_fleet: fleetId ?? 'all' };
    reply.code(201);
    return { code, expires_at: timeTextOf(expiresAtMs) };
  };

const createSession =
  (context: Bearers): HandlerOf<typeof consoleSessionRoutes, 'POST /console-sessions'> =>
  async ({ principal, audited, raw, ip }, reply) => {
    if (principal === null) throw new Error('this route needs a code');
    const { name, scopes, fleetId } = principal;
    const parent = parentOf(principal, context);
    const before = context.tokens.find(bearerOf(raw));
    const browser = browserName(raw.headers['user-agent']);
    const { token, secret, ended } = await context.tokens.createSession({
      parent,
      name,
      scopes,
      fleetId,
      replaced: before?.session ? before : undefined,
      openedIn: { address: ip, ...(browser !== undefined && { browser }) },
    });
    audited.about = { token_id: token.id, ...(ended.length > 0 && { ended: ended.join(',') }) };
    const seconds = Math.ceil(((token.expiresAtMs ?? 0) - Date.now()) / 1_000);
    reply.code(201).header('Set-Cookie', setCookie(raw, secret, Math.max(seconds, 1)));
    return {
      key: secret.key,
      token_id: token.id,
      name,
      scopes: [...scopes],
      fleet_id: fleetId,
      expires_at: timeTextOf(token.expiresAtMs),
      idle_at: timeTextOf(token.session?.idleAtMs),
    };
  };

/** Returns null for the bootstrap token. @throws ApiError invalid_token if the token has ended since it made the code. */
function parentOf({ id }: Principal, context: Bearers): Token | null {
  const { tokens, bootstrap } = context;
  const parent = id === null ? null : tokens.byId(id);
  if (parent === null ? bootstrap.isOn : parent !== undefined && !hasEnded(parent, context)) {
    return parent ?? null;
  }
  throw new ApiError('invalid_token', { msg: 'The token that made this code has ended.' });
}

/** Handles `/console-codes`. */
export function consoleCodeHandlers(parts: CodeParts): Handlers<typeof consoleCodeRoutes> {
  return { 'POST /console-codes': createCode(parts) };
}

/**
 * Requires a code on every route added from here on. It stands for the token that made it from before the audit log's
 * hook on, so that only who has one gets an entry among the changes.
 */
export function authenticateByCode(app: AdminApp, { consoleCodes }: Pick<CodeParts, 'consoleCodes'>): void {
  const refusals = new RateLimiter(refusalBurstSeconds);
  app.addHook('preHandler', async (request) => {
    // A page may have no other origin, since the answer replaces the cookie of this one's session.
    if (request.headers.origin !== undefined && !isOfOwnPage(request)) throw new ApiError('host_refused');
    const { code } = request.body as { code: string };
    const principal = consoleCodes.take(code);
    if (principal !== undefined) {
      request.principal = principal;
      return;
    }
    const wait = refusals.take(refusalsPerSecondMax);
    if (wait > 0) throw rateLimited('Too many codes are refused. Retry later.', wait);
    throw new ApiError('invalid_token', {
      msg: 'This code was used or has expired. Make a new one: fleetpost console. If it was used within its minute and not by you, somebody else did: revoke that session (fleetpost token list).',
    });
  });
}

/** Adds the route for sessions, behind `authenticateByCode`. */
export function addConsoleSessionRoute(app: AdminApp, context: Bearers): void {
  addRoutes(app, consoleSessionRoutes, { 'POST /console-sessions': createSession(context) });
}
