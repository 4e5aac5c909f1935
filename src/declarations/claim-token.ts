import { packed } from '../storage/tables/codec.ts';
import type { TableLayout } from '../storage/tables/collection.ts';
import { KeyCodec, uuidTextField } from '../storage/tables/key-codec.ts';

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

/** claimTokens: id. */
export const claimTokenTable: TableLayout<[string], StoredClaimToken> = {
  name: 'claimTokens',
  key: new KeyCodec(uuidTextField),
  value: packed(
    (token) =>
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
      token.digest.length === 32,
  ),
  isOwn: ([id], token) => token.id === id,
};
