import { randomBytes } from 'node:crypto';
import type { Awaitable } from '../../core/async.ts';
import type { DeviceKey } from '../../core/identity.ts';
import type { ChangeToken } from '../../domain/devices/shard-devices.ts';
import type { MailboxHead } from '../../domain/mail/mail.ts';
import type { Shard } from '../../domain/shard.ts';
import type { FleetPulse } from '../limits/fleet-pulse.ts';
import type { Note } from './activity.ts';

/** Length of every device secret (D1). */
const secretLength = 36;
const sumCount = 2;
/** Random at each start: one key for each sum and character. */
const keys = new Int32Array(sumCount * secretLength);
randomBytes(keys.byteLength).copy(Buffer.from(keys.buffer));

/**
 * Recognises a secret without storing it: two sums of its characters, each times a random key, modulo 2^32 (Carter and
 * Wegman's universal hashing). Another secret matches with probability below 2^-50, and guesses are few (D6). Nearly
 * as cheap as comparing the secret itself; SHA-256 costs ten times that.
 */
export class SecretFingerprint {
  readonly #a: number;
  readonly #b: number;

  /** `secret` must be well-formed. */
  constructor(secret: string) {
    let a = 0;
    let b = 0;
    for (let i = 0, at = 0; i < secretLength; i += 1, at += sumCount) {
      const character = secret.charCodeAt(i);
      a = (a + product(at, character)) | 0;
      b = (b + product(at + 1, character)) | 0;
    }
    this.#a = a;
    this.#b = b;
  }

  /** Takes constant time for text of the right length (D3). */
  fits(text: string): boolean {
    if (text.length !== secretLength) return false;
    let a = this.#a;
    let b = this.#b;
    for (let i = 0, at = 0; i < secretLength; i += 1, at += sumCount) {
      const character = text.charCodeAt(i);
      a = (a - product(at, character)) | 0;
      b = (b - product(at + 1, character)) | 0;
    }
    return (a | b) === 0;
  }
}

function product(at: number, character: number): number {
  return Math.imul(keys[at] as number, character);
}

export interface AdmittedDevice {
  device: DeviceKey;
  fleetId: string;
  shard: Shard;
  secret: string;
  fingerprint: number;
  /** Undefined where changes are not tracked: the device is then good for one request only. */
  changeToken: ChangeToken | undefined;
  /** When its secret expires, if it does. */
  untilMs: number | undefined;
  /** Undefined unless it was read along with the credentials. */
  mailboxSize: number | undefined;
}

const noMail: MailboxHead = { size: 0, mail: undefined };

/** An authenticated device and what was read of it since; valid until its row changes. */
export class CachedDevice {
  readonly device: DeviceKey;
  readonly fleetId: string;
  readonly shard: Shard;
  /** Latest note of its activity. */
  note: Note | undefined;
  readonly #secret: SecretFingerprint;
  /** Its key in the shared tables of limits. */
  readonly fingerprint: number;
  /** Counts the requests of its fleet, once looked up. */
  pulse: FleetPulse | undefined;
  /** Its fleet's bucket in the rate table, once looked up. */
  fleetBucket: number | undefined;
  readonly #changeToken: ChangeToken | undefined;
  readonly #untilMs: number | undefined;
  #mailboxSize: number | undefined;

  constructor(admitted: AdmittedDevice) {
    this.device = admitted.device;
    this.fleetId = admitted.fleetId;
    this.shard = admitted.shard;
    this.#secret = new SecretFingerprint(admitted.secret);
    this.fingerprint = admitted.fingerprint;
    this.#changeToken = admitted.changeToken;
    this.#untilMs = admitted.untilMs;
    this.#mailboxSize = admitted.mailboxSize;
  }

  get deviceId(): string {
    return this.device.slice(this.fleetId.length);
  }

  /** True if the secret was an old one that has expired. */
  get isExpired(): boolean {
    return this.#untilMs !== undefined && Date.now() >= this.#untilMs;
  }

  get isCurrent(): boolean {
    return this.#changeToken?.isCurrent() ?? false;
  }

  /** True if its authentication still holds. */
  get isValid(): boolean {
    return this.isCurrent && !this.isExpired;
  }

  /**
   * True if the size read with the credentials may be used; if changes are not tracked, as it is, for this request
   * only.
   */
  get #isSizeCurrent(): boolean {
    return this.#changeToken?.isCurrent() ?? true;
  }

  accepts(secret: string): boolean {
    return this.#secret.fits(secret);
  }

  /** Most polls find an empty mailbox; a cached size of 0 answers them without a read. */
  mailboxHead(): Awaitable<MailboxHead> {
    if (this.#mailboxSize === 0 && this.#isSizeCurrent) return noMail;
    const head = this.shard.mail.head(this.device);
    if (!(head instanceof Promise) && this.isCurrent) this.#mailboxSize = head.size;
    return head;
  }

  mailboxSize(): Awaitable<number> {
    if (this.#mailboxSize !== undefined && this.#isSizeCurrent) return this.#mailboxSize;
    const size = this.shard.mail.size(this.device);
    if (this.isCurrent && typeof size === 'number') this.#mailboxSize = size;
    return size;
  }
}

/**
 * Caches the devices seen last, so that their next request costs no digest and no read. Two generations: a full young
 * one becomes the old one, and entries not used since are dropped. Keyed by device id alone, to build no key per
 * request: two fleets that share an id evict each other.
 */
export class DeviceCache {
  readonly #generationMax: number;
  #young = new Map<string, CachedDevice>();
  #old = new Map<string, CachedDevice>();

  constructor(devicesMax: number) {
    this.#generationMax = Math.ceil(devicesMax / 2);
  }

  get(deviceId: string): CachedDevice | undefined {
    const young = this.#young.get(deviceId);
    if (young !== undefined) return young;
    const old = this.#old.get(deviceId);
    if (old !== undefined) this.put(old);
    return old;
  }

  put(device: CachedDevice): void {
    if (this.#young.size >= this.#generationMax) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(device.deviceId, device);
  }
}
