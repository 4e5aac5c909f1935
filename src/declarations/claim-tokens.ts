import { hash } from 'node:crypto';
import { Batcher } from '../core/async.ts';
import type { Settings } from '../core/config/settings.ts';
import { ApiError } from '../core/errors.ts';
import { generateClaimToken } from '../core/identity.ts';
import { formatUuid, generateUuid } from '../core/uuid.ts';
import { Collection } from '../storage/tables/collection.ts';
import type { StoredChange, TableStore } from '../storage/tables/table-store.ts';
import { Changes } from './changes.ts';
import { type ClaimToken, claimTokenTable, type StoredClaimToken } from './claim-token.ts';
import { IdPattern } from './id-pattern.ts';
import type { Registry } from './registry.ts';
import { isExpired } from './tokens.ts';

interface Known {
  token: StoredClaimToken;
  pattern: IdPattern | undefined;
}

/** A change of a device count, until it is stored. */
interface Count {
  id: string;
  devices: 1 | -1;
}

/** Counts stored in one transaction. */
const countsMax = 1_000;

function withoutDigest({ token: { digest: _, ...token } }: Known): ClaimToken {
  return token;
}

/**
 * The claim tokens of all fleets, on the main thread: stored in the registry's environment, with all of them in
 * memory. A count is granted only once durable, so that two claims never take the same, on any node; concurrent
 * claims share a commit.
 */
export class ClaimTokens {
  readonly #stored: Collection<[string], StoredClaimToken>;
  readonly #changes: Changes;
  readonly #registry: Registry;
  readonly #settings: Settings<{ claimTokensPerFleetMax: number }>;
  /** In order of id, and so of creation. */
  readonly #known = new Map<string, Known>();
  readonly #byDigest = new Map<string, Known>();
  readonly #onDamage: (key: Buffer) => void;
  readonly #counting = new Batcher<Count, ApiError | undefined>({
    run: (counts) => this.#changes.run(() => this.#store(counts)),
    begin: (go) => go(),
    underWayMax: 1,
    itemsMax: countsMax,
  });

  /** `stored` is the registry's, which closes it. A damaged record lets nobody claim. */
  constructor(
    stored: TableStore,
    registry: Registry,
    settings: Settings<{ claimTokensPerFleetMax: number }>,
    onDamage: (id: string) => void,
  ) {
    this.#stored = new Collection(stored, claimTokenTable);
    this.#changes = new Changes(stored);
    this.#registry = registry;
    this.#settings = settings;
    this.#onDamage = (key) => onDamage(key.toString('latin1'));
    for (const [, token] of this.#stored.entries([], {}, this.#onDamage)) this.#load(token);
  }

  /** Applies changes from another node. */
  follow(changes: readonly StoredChange[]): void {
    for (const [[id], token] of this.#stored.changed(changes, this.#onDamage)) {
      if (token !== undefined) this.#load(token);
      else this.#remove(id);
    }
  }

  /** @throws ApiError fleet_not_found. */
  list(fleetId: string): ClaimToken[] {
    this.#registry.declared(fleetId);
    return [...this.#known.values()].filter(({ token }) => token.fleetId === fleetId).map(withoutDigest);
  }

  /** Finds a token by its text, even if expired or used up; none of a fleet that is being deleted. */
  find(fleetId: string, text: string): ClaimToken | undefined {
    const known = this.#byDigest.get(hash('sha256', text, 'base64url'));
    const isIts = known?.token.fleetId === fleetId && this.#registry.has(fleetId);
    return isIts ? withoutDigest(known) : undefined;
  }

  takesId({ id }: ClaimToken, deviceId: string): boolean {
    const known = this.#known.get(id);
    return known !== undefined && (known.pattern?.test(deviceId) ?? true);
  }

  /** Returns the token with the only copy of its text. @throws ApiError invalid_body, limit_reached. */
  create(
    description: Omit<ClaimToken, 'id' | 'devicesClaimed' | 'createdAtMs'>,
  ): Promise<{ token: ClaimToken; secret: string }> {
    return this.#changes.run(async () => {
      this.#registry.fleet(description.fleetId);
      if (this.list(description.fleetId).length >= this.#settings.current.claimTokensPerFleetMax) {
        throw new ApiError('limit_reached', {
          msg: 'Too many claim tokens in this fleet (claimTokensPerFleetMax). Revoke some.',
        });
      }
      const secret = generateClaimToken();
      const token: StoredClaimToken = {
        id: formatUuid(generateUuid()),
        ...description,
        devicesClaimed: 0,
        createdAtMs: Date.now(),
        digest: hash('sha256', secret, 'buffer'),
      };
      compile(token.idPattern);
      await this.#changes.write(() => this.#stored.put([token.id], token));
      return { token: withoutDigest(this.#set(token)), secret };
    });
  }

  /** Revokes a token. @throws ApiError fleet_not_found, claim_token_not_found. */
  revoke(fleetId: string, id: string): Promise<void> {
    return this.#changes.run(async () => {
      this.#registry.declared(fleetId);
      const known = this.#known.get(id);
      if (known?.token.fleetId !== fleetId) throw new ApiError('claim_token_not_found');
      await this.#changes.write(() => void this.#stored.delete([id]));
      this.#remove(id);
    });
  }

  /** @throws ApiError unauthorized, claim_expired, claim_limit_reached. */
  check({ id }: ClaimToken): void {
    this.#claimable(id);
  }

  /**
   * Reserves one device; durable once settled. @throws ApiError as `check`, or unavailable: then nothing is reserved.
   */
  async take({ id }: ClaimToken): Promise<void> {
    this.#claimable(id);
    await this.#count(id, 1);
  }

  /** Releases a reservation. If that cannot be written it stays taken. */
  async release({ id }: ClaimToken): Promise<void> {
    await this.#count(id, -1).catch(() => {});
  }

  /** Call it before closing the registry, whose environment this writes to. */
  async close(): Promise<void> {
    await this.#counting.drained();
    await this.#changes.settled();
  }

  #claimable(id: string): Known {
    const known = this.#known.get(id);
    if (known === undefined) throw unknownToken();
    if (isExpired(known.token)) throw new ApiError('claim_expired');
    if (known.token.devicesClaimed >= known.token.devicesMax) throw new ApiError('claim_limit_reached');
    return known;
  }

  async #count(id: string, devices: 1 | -1): Promise<void> {
    const refusal = await this.#counting.add({ id, devices });
    if (refusal !== undefined) throw refusal;
  }

  async #store(counts: readonly Count[]): Promise<(ApiError | undefined)[]> {
    const changed = new Map<string, StoredClaimToken>();
    const refusals = counts.map(({ id, devices }) => {
      const token = changed.get(id) ?? this.#known.get(id)?.token;
      if (token === undefined) return unknownToken();
      if (devices > 0 && token.devicesClaimed >= token.devicesMax) return new ApiError('claim_limit_reached');
      changed.set(id, { ...token, devicesClaimed: token.devicesClaimed + devices });
      return undefined;
    });
    await this.#changes.write(() => {
      for (const [id, token] of changed) this.#stored.put([id], token);
    });
    for (const token of changed.values()) this.#set(token);
    return refusals;
  }

  /** A pattern that is refused now is damage too. */
  #load(token: StoredClaimToken): void {
    try {
      this.#set(token);
    } catch {
      this.#onDamage(Buffer.from(token.id, 'latin1'));
    }
  }

  #remove(id: string): void {
    const known = this.#known.get(id);
    this.#known.delete(id);
    if (known !== undefined) this.#byDigest.delete(textOf(known.token.digest));
  }

  #set(token: StoredClaimToken): Known {
    const before = this.#known.get(token.id);
    const pattern = before?.token.idPattern === token.idPattern ? before.pattern : compile(token.idPattern);
    const known = { token, pattern };
    this.#known.set(token.id, known);
    this.#byDigest.set(textOf(token.digest), known);
    return known;
  }
}

/** The same answer for unknown and revoked tokens. */
export function unknownToken(): ApiError {
  return new ApiError('unauthorized', { msg: 'The claim token was not accepted.' });
}

function textOf(digest: Uint8Array): string {
  return Buffer.from(digest).toString('base64url');
}

/** @throws ApiError invalid_body. */
function compile(source: string | null): IdPattern | undefined {
  if (source === null) return undefined;
  try {
    return new IdPattern(source);
  } catch (error) {
    const reason = (error as Error).message.slice(0, 300);
    throw new ApiError('invalid_body', {
      errors: [{ path: '/id_pattern', msg: `cannot be used: ${reason}` }],
    });
  }
}
