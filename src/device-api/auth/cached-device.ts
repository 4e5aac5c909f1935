import { randomBytes } from 'node:crypto';
import type { DeviceKey } from '../../core/identity.ts';
import type { MailboxHead } from '../../domain/mail/mail.ts';
import type { Awaitable, ChangeToken, Shard } from '../../domain/shard.ts';
import type { Note } from './activity.ts';

/** Of every device secret (D1). */
const secretLength = 36;
const lanes = 2;
/** Drawn at each start: one for each lane of each character. */
const keys = new Int32Array(lanes * secretLength);
randomBytes(keys.byteLength).copy(Buffer.from(keys.buffer));

/**
 * What is remembered of a secret, so that it is known again without being kept: two sums of its characters, each
 * times a random key, modulo 2^32 (Carter and Wegman's universal hashing). Another secret fits by a chance below
 * 2^-50, and guesses are few (D6). Nearly as cheap as to compare the secret itself, where a SHA-256 costs ten times that.
 */
export class SecretFingerprint {
  readonly #a: number;
  readonly #b: number;

  /** Of a well-formed secret. */
  constructor(secret: string) {
    let a = 0;
    let b = 0;
    for (let i = 0, at = 0; i < secretLength; i += 1, at += lanes) {
      const character = secret.charCodeAt(i);
      a = (a + product(at, character)) | 0;
      b = (b + product(at + 1, character)) | 0;
    }
    this.#a = a;
    this.#b = b;
  }

  /** In constant time for text of the right length (D3). */
  fits(text: string): boolean {
    if (text.length !== secretLength) return false;
    let a = this.#a;
    let b = this.#b;
    for (let i = 0, at = 0; i < secretLength; i += 1, at += lanes) {
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
  /** Absent: of one request alone. */
  watch: ChangeToken | undefined;
  /** Until when its secret works, if it is one that ends. */
  untilMs: number | undefined;
  /** If it was read along. */
  mailboxSize: number | undefined;
}

const noMail: MailboxHead = { size: 0, mail: undefined };

/** A device that has shown its secret, and what was read of it since; good while nothing of it has changed. */
export class CachedDevice {
  readonly device: DeviceKey;
  readonly fleetId: string;
  readonly shard: Shard;
  /** Where it was last noted that the device is there. */
  note: Note | undefined;
  readonly #secret: SecretFingerprint;
  /** Under which limits know it. */
  readonly fingerprint: number;
  /** Under which its fleet's limit is counted, once it was. */
  fleetBucket: number | undefined;
  readonly #watch: ChangeToken | undefined;
  readonly #untilMs: number | undefined;
  #mailboxSize: number | undefined;

  constructor(admitted: AdmittedDevice) {
    this.device = admitted.device;
    this.fleetId = admitted.fleetId;
    this.shard = admitted.shard;
    this.#secret = new SecretFingerprint(admitted.secret);
    this.fingerprint = admitted.fingerprint;
    this.#watch = admitted.watch;
    this.#untilMs = admitted.untilMs;
    this.#mailboxSize = admitted.mailboxSize;
  }

  get deviceId(): string {
    return this.device.slice(this.fleetId.length);
  }

  /** Whether the secret was an old one, and has ended. */
  get isOver(): boolean {
    return this.#untilMs !== undefined && Date.now() >= this.#untilMs;
  }

  get isCurrent(): boolean {
    return this.#watch?.isCurrent() ?? false;
  }

  /** Whether what it has shown still stands. */
  get isValid(): boolean {
    return this.isCurrent && !this.isOver;
  }

  /** Where nothing tells of changes, what was read along with its credentials is for this request alone, as it is. */
  get #isSizeCurrent(): boolean {
    return this.#watch?.isCurrent() ?? true;
  }

  accepts(secret: string): boolean {
    return this.#secret.fits(secret);
  }

  /** Most who ask have no mail, and of a device that asks again that is known without a look at the store. */
  mailboxHead(): Awaitable<MailboxHead> {
    if (this.#mailboxSize === 0 && this.#isSizeCurrent) return noMail;
    const head = this.shard.mailboxHead(this.device);
    if (!(head instanceof Promise) && this.isCurrent) this.#mailboxSize = head.size;
    return head;
  }

  mailboxSize(): Awaitable<number> {
    if (this.#mailboxSize !== undefined && this.#isSizeCurrent) return this.#mailboxSize;
    const size = this.shard.mailboxSize(this.device);
    if (this.isCurrent && typeof size === 'number') this.#mailboxSize = size;
    return size;
  }
}

/**
 * The devices that were seen last, so that the next request of one costs no digest and no read. Two
 * generations: when the young one is full it becomes the old one, and what was not asked for since is dropped.
 * By device id alone, which comes as one string: two fleets that share an id take turns.
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

  put(known: CachedDevice): void {
    if (this.#young.size >= this.#generationMax) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(known.deviceId, known);
  }
}
