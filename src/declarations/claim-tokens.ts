import { hash } from 'node:crypto';
import { ApiError } from '../core/errors.ts';
import { generateClaimToken } from '../core/identity.ts';
import { formatUuid, generateUuid } from '../core/uuid.ts';
import { pack } from '../storage/lmdb/environment/codec.ts';
import type { StoredChange, StoredTables, Table } from '../storage/lmdb/environment/stored-tables.ts';
import { Changes } from './changes.ts';
import { type ClaimToken, type StoredClaimToken, unpackClaimToken } from './claim-token.ts';
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
  resolve(): void;
  reject(error: Error): void;
}

function keyOf(id: string): Buffer {
  return Buffer.from(id, 'latin1');
}

function withoutDigest({ token: { digest: _, ...token } }: Known): ClaimToken {
  return token;
}

/**
 * The claim tokens of all fleets, on the main thread: stored in the registry's environment, with all of them in
 * memory. A count is granted only once durable, so that two claims never take the same, on any node; concurrent
 * claims share a commit.
 */
export class ClaimTokens {
  readonly #table: Table;
  readonly #changes: Changes;
  readonly #registry: Registry;
  readonly #limits: { claimTokensPerFleetMax: number };
  /** In order of id, and so of creation. */
  readonly #known = new Map<string, Known>();
  readonly #byDigest = new Map<string, Known>();
  readonly #onDamage: (id: string) => void;
  #counts: Count[] = [];
  #isCounting = false;

  /** `stored` is the registry's, which closes it. A damaged record lets nobody claim. */
  constructor(
    stored: StoredTables,
    registry: Registry,
    limits: { claimTokensPerFleetMax: number },
    onDamage: (id: string) => void,
  ) {
    this.#table = stored.table('claimTokens');
    this.#changes = new Changes(stored);
    this.#registry = registry;
    this.#limits = limits;
    this.#onDamage = onDamage;
    for (const { key, value } of this.#table.getRange({})) this.#read(key, value);
  }

  /** Applies changes from another node. */
  follow(changes: readonly StoredChange[]): void {
    for (const { name, key, value } of changes) {
      if (name !== 'claimTokens') continue;
      if (value !== undefined) this.#read(key, value);
      else this.#remove(key.toString('latin1'));
    }
  }

  /** @throws ApiError fleet_not_found. */
  list(fleetId: string): ClaimToken[] {
    this.#registry.fleet(fleetId);
    return [...this.#known.values()].filter(({ token }) => token.fleetId === fleetId).map(withoutDigest);
  }

  /** Finds a token by its text, even if expired or used up. */
  find(fleetId: string, text: string): ClaimToken | undefined {
    const known = this.#byDigest.get(hash('sha256', text, 'base64url'));
    return known?.token.fleetId === fleetId ? withoutDigest(known) : undefined;
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
      if (this.list(description.fleetId).length >= this.#limits.claimTokensPerFleetMax) {
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
      await this.#changes.write(() => {
        this.#table.putSync(keyOf(token.id), pack(token));
      });
      return { token: withoutDigest(this.#set(token)), secret };
    });
  }

  /** Revokes a token. @throws ApiError fleet_not_found, claim_token_not_found. */
  revoke(fleetId: string, id: string): Promise<void> {
    return this.#changes.run(async () => {
      this.#registry.fleet(fleetId);
      const known = this.#known.get(id);
      if (known?.token.fleetId !== fleetId) throw new ApiError('claim_token_not_found');
      await this.#changes.write(() => {
        this.#table.removeSync(keyOf(id));
      });
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
    await this.#changes.settled();
  }

  #claimable(id: string): Known {
    const known = this.#known.get(id);
    if (known === undefined) throw unknownToken();
    if (isExpired(known.token)) throw new ApiError('claim_expired');
    if (known.token.devicesClaimed >= known.token.devicesMax) throw new ApiError('claim_limit_reached');
    return known;
  }

  /** Batched with all counts requested until the write begins. */
  #count(id: string, devices: 1 | -1): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#counts.push({ id, devices, resolve, reject });
      if (this.#isCounting) return;
      this.#isCounting = true;
      this.#changes
        .run(() => this.#store())
        .catch((error: Error) => {
          for (const count of this.#takeCounts()) count.reject(error);
        });
    });
  }

  #takeCounts(): Count[] {
    const counts = this.#counts;
    this.#counts = [];
    this.#isCounting = false;
    return counts;
  }

  async #store(): Promise<void> {
    const counts = this.#takeCounts();
    const changed = new Map<string, StoredClaimToken>();
    const answers: (() => void)[] = [];
    for (const count of counts) {
      const { id, devices, resolve, reject } = count;
      const token = changed.get(id) ?? this.#known.get(id)?.token;
      if (token === undefined) answers.push(() => reject(unknownToken()));
      else if (devices > 0 && token.devicesClaimed >= token.devicesMax) {
        answers.push(() => reject(new ApiError('claim_limit_reached')));
      } else {
        changed.set(id, { ...token, devicesClaimed: token.devicesClaimed + devices });
        answers.push(resolve);
      }
    }
    try {
      await this.#changes.write(() => {
        for (const [id, token] of changed) this.#table.putSync(keyOf(id), pack(token));
      });
    } catch (error) {
      for (const { reject } of counts) reject(error as Error);
      return;
    }
    for (const token of changed.values()) this.#set(token);
    for (const answer of answers) answer();
  }

  #read(key: Buffer, value: Buffer): void {
    try {
      this.#set(unpackClaimToken(value));
    } catch {
      this.#onDamage(key.toString('latin1'));
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
