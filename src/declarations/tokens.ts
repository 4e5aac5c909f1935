import { hash } from 'node:crypto';
import { ApiError } from '../core/errors.ts';
import { generateApiToken } from '../core/identity.ts';
import { type Scope, scopes } from '../core/scope.ts';
import { formatUuid, generateUuid, parseUuid } from '../core/uuid.ts';
import { pack, unpack } from '../storage/lmdb/environment/codec.ts';
import type { StoredChange, StoredTables, Table } from '../storage/lmdb/environment/stored-tables.ts';
import { Changes } from './changes.ts';

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
}

/** As stored; the token's text itself is stored nowhere. */
interface StoredToken extends Token {
  /** SHA-256: 32 random characters need no slow hash (D3). */
  digest: Uint8Array;
}

/** The key that finds a token; comparing it reveals nothing of tokens with other hashes. */
function digestTextOf(secret: string): string {
  return hash('sha256', secret, 'base64url');
}

/** @throws Error if it is not a token. */
export function unpackToken(bytes: Buffer): StoredToken {
  const token = unpack(bytes) as Partial<StoredToken>;
  const isToken =
    parseUuid(token.id ?? '') !== undefined &&
    typeof token.name === 'string' &&
    Array.isArray(token.scopes) &&
    token.scopes.every((scope) => scopes.includes(scope)) &&
    (token.fleetId === null || typeof token.fleetId === 'string') &&
    typeof token.createdAtMs === 'number' &&
    (token.expiresAtMs === null || typeof token.expiresAtMs === 'number') &&
    token.digest instanceof Uint8Array &&
    token.digest.length === 32;
  if (!isToken) throw new Error('not a token');
  return token as StoredToken;
}

/**
 * The tokens of the admin API, on the main thread: stored in the registry's environment, with all of them in memory.
 * An expired token stays listed until it is revoked. Last uses are known only since the start: storing them would
 * turn every read into a write.
 */
export class Tokens {
  readonly #table: Table;
  readonly #changes: Changes;
  readonly #limits: { apiTokensMax: number };
  readonly #onDamage: (id: string) => void;
  readonly #byDigest = new Map<string, Token>();
  /** In order of id, and so of creation. */
  readonly #digests = new Map<string, string>();
  readonly #lastUsedMs = new Map<string, number>();

  /** `stored` is the registry's, which closes it. A damaged record admits nobody; devices are served all the same. */
  constructor(stored: StoredTables, limits: { apiTokensMax: number }, onDamage: (id: string) => void) {
    this.#table = stored.table('tokens');
    this.#changes = new Changes(stored);
    this.#limits = limits;
    this.#onDamage = onDamage;
    for (const { key, value } of this.#table.getRange({})) this.#load(key, value);
  }

  /** Applies changes from another node. */
  follow(changes: readonly StoredChange[]): void {
    for (const { name, key, value } of changes) {
      if (name !== 'tokens') continue;
      if (value !== undefined) this.#load(key, value);
      else this.#remove(key.toString('latin1'));
    }
  }

  /** Finds a token by its text, even if expired. */
  find(bearer: string): Token | undefined {
    return this.#byDigest.get(digestTextOf(bearer));
  }

  noteUse({ id }: Token): void {
    this.#lastUsedMs.set(id, Date.now());
  }

  /** Since the server started. */
  lastUsedMs({ id }: Token): number | undefined {
    return this.#lastUsedMs.get(id);
  }

  list(): Token[] {
    return [...this.#digests.values()].flatMap((digest) => this.#byDigest.get(digest) ?? []);
  }

  /** Whether a valid token with full access exists. */
  get hasAdmin(): boolean {
    return this.list().some(
      (token) => token.scopes.includes('admin') && token.fleetId === null && !isExpired(token),
    );
  }

  /** Returns the token with the only copy of its text. @throws ApiError limit_reached. */
  create(
    description: Pick<Token, 'name' | 'scopes' | 'fleetId' | 'expiresAtMs'>,
  ): Promise<{ token: Token; secret: string }> {
    return this.#changes.run(async () => {
      if (this.#byDigest.size >= this.#limits.apiTokensMax) {
        throw new ApiError('limit_reached', {
          msg: 'Too many API tokens (apiTokensMax). Revoke some.',
        });
      }
      const secret = generateApiToken();
      const token: Token = { id: formatUuid(generateUuid()), ...description, createdAtMs: Date.now() };
      const digest = hash('sha256', secret, 'buffer');
      await this.#changes.write(() => {
        this.#table.putSync(Buffer.from(token.id, 'latin1'), pack({ ...token, digest }));
      });
      this.#set(token, digest.toString('base64url'));
      return { token, secret };
    });
  }

  /** Revokes a token. @throws ApiError token_not_found. */
  revoke(id: string): Promise<void> {
    return this.#changes.run(async () => {
      if (!this.#digests.has(id)) throw new ApiError('token_not_found');
      await this.#changes.write(() => {
        this.#table.removeSync(Buffer.from(id, 'latin1'));
      });
      this.#remove(id);
    });
  }

  /** Call it before closing the registry, whose environment this writes to. */
  async close(): Promise<void> {
    await this.#changes.settled();
  }

  #load(key: Buffer, value: Buffer): void {
    try {
      const { digest, ...token } = unpackToken(value);
      this.#set(token, Buffer.from(digest).toString('base64url'));
    } catch {
      this.#onDamage(key.toString('latin1'));
    }
  }

  #remove(id: string): void {
    const digest = this.#digests.get(id);
    if (digest !== undefined) this.#byDigest.delete(digest);
    this.#digests.delete(id);
    this.#lastUsedMs.delete(id);
  }

  #set(token: Token, digest: string): void {
    this.#byDigest.set(digest, token);
    this.#digests.set(token.id, digest);
  }
}

export function isExpired({ expiresAtMs }: Pick<Token, 'expiresAtMs'>): boolean {
  return expiresAtMs !== null && expiresAtMs <= Date.now();
}
