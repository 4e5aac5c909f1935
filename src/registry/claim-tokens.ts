import { hash } from 'node:crypto';
import { ApiError } from '../core/errors.ts';
import { generateClaimToken } from '../core/identity.ts';
import { formatUuid, generateUuid } from '../core/uuid.ts';
import { pack } from '../store/codec.ts';
import type { Environment, Table } from '../store/environment.ts';
import { Changes } from './changes.ts';
import { type ClaimToken, type StoredClaimToken, unpackClaimToken } from './claim-token.ts';
import { IdPattern } from './id-pattern.ts';
import type { Registry } from './registry.ts';
import { isExpired } from './tokens.ts';

interface Known {
  token: StoredClaimToken;
  pattern: IdPattern | undefined;
}

function keyOf(id: string): Buffer {
  return Buffer.from(id, 'latin1');
}

function seen({ token: { digest: _, ...token } }: Known): ClaimToken {
  return token;
}

/**
 * The claim tokens of all fleets, on the main thread: kept in the registry's environment and, whole, in memory.
 * A count is taken in memory at once, so that no two claims take the same, and given out when it is on disk; all
 * that were taken meanwhile share a commit.
 */
export class ClaimTokens {
  readonly #table: Table;
  readonly #changes: Changes;
  readonly #registry: Registry;
  readonly #limits: { claimTokensPerFleetMax: number };
  /** In order of id, which is that of creation. */
  readonly #known = new Map<string, Known>();
  readonly #byDigest = new Map<string, Known>();
  readonly #uncounted = new Set<Known>();
  #counting: Promise<void> | undefined;

  /** `environment` is the registry's, which closes it. A record that does not decode lets nobody claim. */
  constructor(
    environment: Environment,
    registry: Registry,
    limits: { claimTokensPerFleetMax: number },
    onDamage: (id: string) => void,
  ) {
    this.#table = environment.table('claimTokens');
    this.#changes = new Changes(environment);
    this.#registry = registry;
    this.#limits = limits;
    for (const { key, value } of this.#table.getRange({})) {
      try {
        this.#keep(unpackClaimToken(value));
      } catch {
        onDamage(key.toString('latin1'));
      }
    }
  }

  /** @throws ApiError fleet_not_found. */
  list(fleetId: string): ClaimToken[] {
    this.#registry.fleet(fleetId);
    return [...this.#known.values()].filter(({ token }) => token.fleetId === fleetId).map(seen);
  }

  /** Whose text this is, be it expired or used up or not. */
  find(fleetId: string, text: string): ClaimToken | undefined {
    const known = this.#byDigest.get(hash('sha256', text, 'base64url'));
    return known?.token.fleetId === fleetId ? seen(known) : undefined;
  }

  takesId({ id }: ClaimToken, deviceId: string): boolean {
    const known = this.#known.get(id);
    return known !== undefined && (known.pattern?.test(deviceId) ?? true);
  }

  /** Answers the token with the only copy of its text. @throws ApiError invalid_body, limit_reached. */
  create(
    description: Omit<ClaimToken, 'id' | 'devicesClaimed' | 'createdAtMs'>,
  ): Promise<{ token: ClaimToken; secret: string }> {
    return this.#changes.run(async () => {
      if (this.list(description.fleetId).length >= this.#limits.claimTokensPerFleetMax) {
        throw new ApiError('limit_reached', {
          msg: 'This fleet has all the claim tokens it may have (claimTokensPerFleetMax): revoke some.',
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
      await this.#changes.write(() => {
        this.#table.putSync(keyOf(token.id), pack(token));
      });
      return { token: seen(this.#keep(token)), secret };
    });
  }

  /** Nobody claims by it from now on. @throws ApiError fleet_not_found, claim_token_not_found. */
  revoke(fleetId: string, id: string): Promise<void> {
    return this.#changes.run(async () => {
      this.#registry.fleet(fleetId);
      const known = this.#known.get(id);
      if (known?.token.fleetId !== fleetId) throw new ApiError('claim_token_not_found');
      await this.#changes.write(() => {
        this.#table.removeSync(keyOf(id));
      });
      this.#known.delete(id);
      this.#byDigest.delete(textOf(known.token.digest));
    });
  }

  /** @throws ApiError unauthorized, claim_expired, claim_limit_reached. */
  check({ id }: ClaimToken): void {
    this.#claimable(id);
  }

  /**
   * One device may be made, once this settles: that it was is on disk then. @throws ApiError as `check`, or
   * unavailable: then none is taken.
   */
  async take({ id }: ClaimToken): Promise<void> {
    const known = this.#claimable(id);
    known.token.devicesClaimed += 1;
    try {
      await this.#count(known);
    } catch (error) {
      known.token.devicesClaimed -= 1;
      throw error;
    }
  }

  /** The device was not made. Where that cannot be written it stays taken after a restart. */
  async giveBack({ id }: ClaimToken): Promise<void> {
    const known = this.#known.get(id);
    if (known === undefined) return;
    known.token.devicesClaimed -= 1;
    await this.#count(known).catch(() => {});
  }

  /** Before the registry, whose environment this writes to. */
  async close(): Promise<void> {
    await this.#changes.settled();
  }

  #claimable(id: string): Known {
    const known = this.#known.get(id);
    if (known === undefined) throw unknownToken();
    if (isExpired(known.token)) throw new ApiError('claim_expired');
    if (known.token.devicesClaimed >= known.token.devicesMax) throw new ApiError('claim_limit_reached');
    return known;
  }

  /** Writes how many there are by now, with all others that changed until the write begins. */
  #count(known: Known): Promise<void> {
    this.#uncounted.add(known);
    this.#counting ??= this.#changes.run(async () => {
      this.#counting = undefined;
      const changed = [...this.#uncounted].filter(({ token }) => this.#known.has(token.id));
      this.#uncounted.clear();
      await this.#changes.write(() => {
        for (const { token } of changed) this.#table.putSync(keyOf(token.id), pack(token));
      });
    });
    return this.#counting;
  }

  #keep(token: StoredClaimToken): Known {
    const known = { token, pattern: compile(token.idPattern) };
    this.#known.set(token.id, known);
    this.#byDigest.set(textOf(token.digest), known);
    return known;
  }
}

/** The same for every token that is none, or none any more. */
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
