import { parseUuid } from '../core/uuid.ts';
import { unpack } from '../storage/lmdb/environment/codec.ts';

/** What devices of one fleet register themselves with, as everybody may see it. */
export interface ClaimToken {
  id: string;
  fleetId: string;
  name: string;
  /** Devices that may claim with it, and that did. */
  devicesMax: number;
  devicesClaimed: number;
  createdAtMs: number;
  /** Null: never. */
  expiresAtMs: number | null;
  /** Null: any id, and the server gives one to a device that names none. */
  idPattern: string | null;
  /** Of the devices. */
  tags: readonly string[];
}

/** As it is stored: what the token itself was is nowhere. */
export interface StoredClaimToken extends ClaimToken {
  digest: Uint8Array;
}

/** What a device sends, checked for its form. */
export interface ClaimRequest {
  fleetId: string;
  claimToken: string;
  deviceId?: string;
  /** Its own choice; a claim that names id and secret can be repeated. */
  deviceSecret?: string;
  name?: string;
  /** Of the client, or of the proxy before it. */
  address: string;
}

/** What it is answered. */
export interface ClaimedDevice {
  fleetId: string;
  deviceId: string;
  deviceSecret: string;
}

/** @throws Error for what is no claim token. */
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
