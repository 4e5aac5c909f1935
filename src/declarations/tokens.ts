import { hash } from 'node:crypto';
import type { Settings } from '../core/config/settings.ts';
import { ApiError } from '../core/errors.ts';
import {
  generateApiToken,
  generateSessionSecret,
  type SessionSecret,
  sessionToken,
} from '../core/identity.ts';
import { type Scope, scopes } from '../core/scope.ts';
import { formatUuid, generateUuid } from '../core/uuid.ts';
import { packed } from '../storage/tables/codec.ts';
import { Collection, type TableLayout } from '../storage/tables/collection.ts';
import { KeyCodec, uuidTextField } from '../storage/tables/key-codec.ts';
import type { StoredChange, TableStore } from '../storage/tables/table-store.ts';
import { Changes } from './changes.ts';

/** A session of the console ends at the latest after this time, */
export const sessionMs = 12 * 3_600_000;
/** or after this time without a request. */
const sessionIdleMs = 3_600_000;
/** Use within this time of the last write of its idle time is not written: one write in ten minutes at most. */
const renewalMs = 600_000;
/** Maximum sessions at a time, */
const sessionsMax = 1_000;
/** and of one token, so that none takes those of all others: a further one ends the least recently used. */
const sessionsPerTokenMax = 20;
/** Sessions that ended lately and whose bearers can still be told so, on the node that saw them end. */
const endedSessionsMax = 1_000;

/** A token of the admin API, without its secret. */
export interface Token {
  id: string;
  name: string;
  scopes: readonly Scope[];
  /** Null: all fleets. */
  fleetId: string | null;
  createdAtMs: number;
  /** Null: never. */
  expiresAtMs: number | null;
  /** Set for a session of the console; null for an API token. */
  session: TokenSession | null;
}

/** Fields of a session token beyond others': it is revoked with its parent, and ends when it is idle. */
export interface TokenSession {
  /** Null: the bootstrap token. */
  parentId: string | null;
  /** When it ends without further requests. Stored, so that it holds on every node and over restarts. */
  idleAtMs: number;
  /** Where it was opened: the address, and the browser in words. Absent: not known. */
  address?: string;
  browser?: string;
}

/** As stored; the token's text itself is stored nowhere. */
interface StoredToken extends Token {
  /** SHA-256: 32 random characters need no slow hash (D3). */
  digest: Uint8Array;
}

function isSession({ idleAtMs, address = '', browser = '' }: Partial<TokenSession>): boolean {
  return typeof idleAtMs === 'number' && typeof address === 'string' && typeof browser === 'string';
}

/** The key that finds a token; comparing it reveals nothing of tokens with other hashes. */
function digestTextOf(secret: string): string {
  return hash('sha256', secret, 'base64url');
}

/** tokens: id. */
export const tokenTable: TableLayout<[string], StoredToken> = {
  name: 'tokens',
  key: new KeyCodec(uuidTextField),
  value: packed(
    (token) =>
      typeof token.name === 'string' &&
      Array.isArray(token.scopes) &&
      token.scopes.every((scope) => scopes.includes(scope)) &&
      (token.fleetId === null || typeof token.fleetId === 'string') &&
      typeof token.createdAtMs === 'number' &&
      (token.expiresAtMs === null || typeof token.expiresAtMs === 'number') &&
      (token.session === null || (token.session !== undefined && isSession(token.session))) &&
      token.digest instanceof Uint8Array &&
      token.digest.length === 32,
  ),
  isOwn: ([id], token) => token.id === id,
};

/**
 * The tokens of the admin API, on the main thread: stored in the registry's environment, with all of them in memory.
 * An expired token stays listed until it is revoked. Last uses are known only since the start: storing them would
 * turn every read into a write.
 */
export class Tokens {
  readonly #stored: Collection<[string], StoredToken>;
  readonly #changes: Changes;
  readonly #settings: Settings<{ apiTokensMax: number }>;
  readonly #onDamage: (key: Buffer) => void;
  readonly #byDigest = new Map<string, Token>();
  /** In order of id, and so of creation. */
  readonly #digests = new Map<string, string>();
  readonly #lastUsedMs = new Map<string, number>();
  /** By digest, in order of their end. */
  readonly #endedSessions = new Map<string, Token>();
  /** Ids of sessions whose idle time is being written. */
  readonly #renewing = new Set<string>();

  /** `stored` is the registry's, which closes it. A damaged record admits nobody; devices are served all the same. */
  constructor(
    stored: TableStore,
    settings: Settings<{ apiTokensMax: number }>,
    onDamage: (id: string) => void,
  ) {
    this.#stored = new Collection(stored, tokenTable);
    this.#changes = new Changes(stored);
    this.#settings = settings;
    this.#onDamage = (key) => onDamage(key.toString('latin1'));
    for (const [, token] of this.#stored.entries([], {}, this.#onDamage)) this.#set(token);
  }

  /** Applies changes from another node. */
  follow(changes: readonly StoredChange[]): void {
    for (const [[id], token] of this.#stored.changed(changes, this.#onDamage)) {
      if (token !== undefined) this.#set(token);
      else this.#remove(id);
    }
  }

  /** Finds a token by its text, even if expired. */
  find(bearer: string): Token | undefined {
    return this.#byDigest.get(digestTextOf(bearer));
  }

  /** Finds a session that was removed lately, because it expired, was revoked, or made room. */
  findEndedSession(bearer: string): Token | undefined {
    return this.#endedSessions.get(digestTextOf(bearer));
  }

  /** Finds a token by its id, even if expired. */
  byId(id: string): Token | undefined {
    const digest = this.#digests.get(id);
    return digest === undefined ? undefined : this.#byDigest.get(digest);
  }

  noteUse({ id, session }: Token): void {
    const nowMs = Date.now();
    this.#lastUsedMs.set(id, nowMs);
    if (session === null || nowMs + sessionIdleMs - session.idleAtMs < renewalMs) return;
    if (this.#renewing.has(id)) return;
    this.#renewing.add(id);
    // After a failed write, the next use tries again; at worst the session ends early.
    void this.#renew(id, nowMs + sessionIdleMs)
      .catch(() => {})
      .finally(() => this.#renewing.delete(id));
  }

  /** Since the server started. */
  lastUsedMs({ id }: Token): number | undefined {
    return this.#lastUsedMs.get(id);
  }

  list(): Token[] {
    return [...this.#digests.values()].flatMap((digest) => this.#byDigest.get(digest) ?? []);
  }

  /** True if a valid token with full access exists. */
  get hasAdmin(): boolean {
    return this.list().some(
      (token) =>
        token.session === null &&
        token.scopes.includes('admin') &&
        token.fleetId === null &&
        !isExpired(token),
    );
  }

  /** Returns the token with the only copy of its text. @throws ApiError limit_reached. */
  create(
    description: Pick<Token, 'name' | 'scopes' | 'fleetId' | 'expiresAtMs'>,
  ): Promise<{ token: Token; secret: string }> {
    return this.#changes.run(async () => {
      const others = this.list().filter(({ session }) => session === null);
      if (others.length >= this.#settings.current.apiTokensMax) {
        throw new ApiError('limit_reached', {
          msg: 'Too many API tokens (apiTokensMax). Revoke some.',
        });
      }
      const secret = generateApiToken();
      const token = await this.#add({ ...description, createdAtMs: Date.now(), session: null }, secret, []);
      return { token, secret };
    });
  }

  /**
   * Creates a token for a session of the console, and removes those that have ended and the one that it replaces.
   * Returns the ids of those it ended.
   * @throws ApiError invalid_token if the parent was revoked meanwhile; limit_reached.
   */
  createSession({
    parent,
    replaced,
    openedIn = {},
    ...description
  }: Pick<Token, 'name' | 'scopes' | 'fleetId'> & {
    parent: Token | null;
    /** The session that its browser had. */
    replaced?: Token | undefined;
    openedIn?: Pick<TokenSession, 'address' | 'browser'>;
  }): Promise<{
    token: Token;
    secret: SessionSecret;
    ended: string[];
  }> {
    return this.#changes.run(async () => {
      if (parent !== null && this.byId(parent.id) === undefined) throw new ApiError('invalid_token');
      const sessions = this.list().filter(({ session }) => session !== null);
      const isOver = (one: Token): boolean => isExpired(one) || one.id === replaced?.id;
      const others = this.#sessionsOf(parent?.id ?? null).filter((one) => !isOver(one));
      const surplus = this.#leastUsed(others);
      const ended = [...sessions.filter(isOver), ...surplus];
      if (sessions.length - ended.length >= sessionsMax) {
        const msg = `Too many sessions of the console: ${sessionsMax}. Revoke some tokens of the kind session.`;
        throw new ApiError('limit_reached', { msg });
      }
      const createdAtMs = Date.now();
      const expiresAtMs = Math.min(createdAtMs + sessionMs, parent?.expiresAtMs ?? Number.POSITIVE_INFINITY);
      const session = { parentId: parent?.id ?? null, idleAtMs: createdAtMs + sessionIdleMs, ...openedIn };
      const secret = generateSessionSecret();
      const token = await this.#add(
        { ...description, createdAtMs, expiresAtMs, session },
        sessionToken(secret),
        ended,
      );
      return { token, secret, ended: ended.filter((one) => !isExpired(one)).map(({ id }) => id) };
    });
  }

  /** Revokes a token and its sessions; returns the ids of all. @throws ApiError token_not_found. */
  revoke(id: string): Promise<string[]> {
    return this.#changes.run(async () => {
      const token = this.byId(id);
      if (token === undefined) throw new ApiError('token_not_found');
      const revoked = [token, ...this.#sessionsOf(id)];
      await this.#delete(revoked);
      return revoked.map((one) => one.id);
    });
  }

  /** Revokes the sessions of the bootstrap token, which was turned off. */
  revokeBootstrapSessions(): Promise<void> {
    return this.#changes.run(() => this.#delete(this.#sessionsOf(null)));
  }

  /** Call it before closing the registry, whose environment this writes to. */
  async close(): Promise<void> {
    await this.#changes.settled();
  }

  #sessionsOf(parentId: string | null): Token[] {
    return this.list().filter(({ session }) => session !== null && session.parentId === parentId);
  }

  /** Those that have to end before a token has another session. */
  #leastUsed(sessions: readonly Token[]): Token[] {
    const usedMs = ({ id, session }: Token): number =>
      Math.max(this.#lastUsedMs.get(id) ?? 0, (session?.idleAtMs ?? 0) - sessionIdleMs);
    const byUse = [...sessions].sort((a, b) => usedMs(a) - usedMs(b));
    return byUse.slice(0, Math.max(0, sessions.length + 1 - sessionsPerTokenMax));
  }

  async #add(description: Omit<Token, 'id'>, secret: string, removed: readonly Token[]): Promise<Token> {
    const token: Token = { id: formatUuid(generateUuid()), ...description };
    const stored = { ...token, digest: hash('sha256', secret, 'buffer') };
    await this.#changes.write(() => {
      for (const { id } of removed) this.#stored.delete([id]);
      this.#stored.put([token.id], stored);
    });
    for (const { id } of removed) this.#remove(id);
    this.#set(stored);
    return token;
  }

  async #delete(tokens: readonly Token[]): Promise<void> {
    if (tokens.length === 0) return;
    await this.#changes.write(() => {
      for (const { id } of tokens) this.#stored.delete([id]);
    });
    for (const { id } of tokens) this.#remove(id);
  }

  #renew(id: string, idleAtMs: number): Promise<void> {
    return this.#changes.run(async () => {
      const token = this.byId(id);
      const digest = this.#digests.get(id);
      if (token === undefined || token.session === null || digest === undefined) return;
      const session = { ...token.session, idleAtMs };
      const stored = { ...token, session, digest: Buffer.from(digest, 'base64url') };
      await this.#changes.write(() => this.#stored.put([id], stored));
      this.#set(stored);
    });
  }

  #remove(id: string): void {
    const digest = this.#digests.get(id);
    if (digest !== undefined) {
      this.#rememberEnd(digest);
      this.#byDigest.delete(digest);
    }
    this.#digests.delete(id);
    this.#lastUsedMs.delete(id);
  }

  #rememberEnd(digest: string): void {
    const token = this.#byDigest.get(digest);
    if (token === undefined || token.session === null) return;
    this.#endedSessions.set(digest, token);
    const [oldest] = this.#endedSessions.keys();
    if (this.#endedSessions.size > endedSessionsMax && oldest !== undefined) {
      this.#endedSessions.delete(oldest);
    }
  }

  #set({ digest, ...token }: StoredToken): void {
    const text = Buffer.from(digest).toString('base64url');
    this.#byDigest.set(text, token);
    this.#digests.set(token.id, text);
  }
}

/** True if its time is over, or a session was idle for too long. */
export function isExpired({
  expiresAtMs,
  session = null,
}: Pick<Token, 'expiresAtMs'> & Partial<Pick<Token, 'session'>>): boolean {
  const nowMs = Date.now();
  if (expiresAtMs !== null && expiresAtMs <= nowMs) return true;
  return session !== null && session.idleAtMs <= nowMs;
}
