import { hash } from 'node:crypto';
import type { Settings } from '../core/config/settings.ts';
import { ApiError } from '../core/errors.ts';
import { generateApiToken } from '../core/identity.ts';
import { type Scope, scopes } from '../core/scope.ts';
import { formatUuid, generateUuid } from '../core/uuid.ts';
import { packed } from '../storage/tables/codec.ts';
import { Collection, type TableLayout } from '../storage/tables/collection.ts';
import { KeyCodec, uuidTextField } from '../storage/tables/key-codec.ts';
import type { StoredChange, TableStore } from '../storage/tables/table-store.ts';
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
      if (this.#byDigest.size >= this.#settings.current.apiTokensMax) {
        throw new ApiError('limit_reached', {
          msg: 'Too many API tokens (apiTokensMax). Revoke some.',
        });
      }
      const secret = generateApiToken();
      const token: Token = { id: formatUuid(generateUuid()), ...description, createdAtMs: Date.now() };
      const stored = { ...token, digest: hash('sha256', secret, 'buffer') };
      await this.#changes.write(() => this.#stored.put([token.id], stored));
      this.#set(stored);
      return { token, secret };
    });
  }

  /** Revokes a token. @throws ApiError token_not_found. */
  revoke(id: string): Promise<void> {
    return this.#changes.run(async () => {
      if (!this.#digests.has(id)) throw new ApiError('token_not_found');
      await this.#changes.write(() => void this.#stored.delete([id]));
      this.#remove(id);
    });
  }

  /** Call it before closing the registry, whose environment this writes to. */
  async close(): Promise<void> {
    await this.#changes.settled();
  }

  #remove(id: string): void {
    const digest = this.#digests.get(id);
    if (digest !== undefined) this.#byDigest.delete(digest);
    this.#digests.delete(id);
    this.#lastUsedMs.delete(id);
  }

  #set({ digest, ...token }: StoredToken): void {
    const text = Buffer.from(digest).toString('base64url');
    this.#byDigest.set(text, token);
    this.#digests.set(token.id, text);
  }
}

export function isExpired({ expiresAtMs }: Pick<Token, 'expiresAtMs'>): boolean {
  return expiresAtMs !== null && expiresAtMs <= Date.now();
}
