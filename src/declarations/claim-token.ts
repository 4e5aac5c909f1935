import { parseUuid } from '../core/uuid.ts';
import { unpack } from '../storage/lmdb/environment/codec.ts';

/** A token for devices of one fleet to register themselves, without its secret. */
export interface ClaimToken {
  id: string;
  fleetId: string;
  name: string;
  /** Devices that may claim with it, and that have. */
  devicesMax: number;
  devicesClaimed: number;
  createdAtMs: number;
  /** Null: never. */
  expiresAtMs: number | null;
  /** Null: any id; the server generates one for a device that names none. */
  idPattern: string | null;
  /** Tags of the devices. */
  tags: readonly string[];
}

/** As stored; the token's text itself is stored nowhere. */
export interface StoredClaimToken extends ClaimToken {
  digest: Uint8Array;
}

/** A device's claim, syntactically checked. */
export interface ClaimRequest {
  fleetId: string;
  claimToken: string;
  deviceId?: string;
  /** Chosen by the device; a claim with both id and secret can be repeated. */
  deviceSecret?: string;
  name?: string;
  /** Address of the client, or of the proxy in front. */
  address: string;
}

/** The answer to a claim. */
export interface ClaimedDevice {
  fleetId: string;
  deviceId: string;
  deviceSecret: string;
}

/** @throws Error if it is not a claim token. */
export function unpackClaimToken(bytes: Buffer): StoredClaimToken {
  const token = unpack(bytes) as Partial<StoredClaimToken>;
  const isToken =
    parseUuid(token.id ?? '') !== undefined &&
    typeof token.fleetId === 'string' &&
    typeof token.name === 'string' &&
    Number.isInteger(token.devicesMax) &&
    Number.isInteger(token.devicesClaimed) &&
    typeof token.createdAtMs === 'number' &&
    (token.expiresAtMs === null || typeof token.expiresAtMs === 'number') &&
    (token.idPattern === null || typeof token.idPattern === 'string') &&
    Array.isArray(token.tags) &&
    token.tags.every((tag) => typeof tag === 'string') &&
    token.digest instanceof Uint8Array &&
    token.digest.length === 32;
  if (!isToken) throw new Error('not a claim token');
  return token as StoredClaimToken;
}
