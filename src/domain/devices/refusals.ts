import type { CredentialDetail, ErrorCode, FieldError } from '../../core/errors.ts';
import type { DeviceKey } from '../../core/identity.ts';

/** Maximum devices that one thread remembers; beyond, the one refused longest ago is forgotten. */
const devicesMax = 4_096;
/** Maximum different refusals of a device; beyond, the one seen longest ago is forgotten. */
const refusalsPerDeviceMax = 16;
/** Maximum length of an error's path, which may have a device's own words in it. */
const pathLengthMax = 256;

/** One refused request. */
export interface RefusedRequest {
  /** Method and pattern of the path. */
  route: string;
  code: ErrorCode;
  /** Which credential was wrong; undefined for other codes. */
  detail?: CredentialDetail | undefined;
  msg: string;
  /** The first part of the body that does not match its schema. */
  error?: FieldError | undefined;
  /** What its path names: a schema, or the mail that was sent to it. */
  name?: string | undefined;
}

/** Equal refusals of one device, since this node started. */
export interface Refusal extends RefusedRequest {
  count: number;
  firstMs: number;
  lastMs: number;
}

/** The refusals of all threads of this node. */
export interface RefusalLog {
  /** Last one first. */
  of(device: DeviceKey): Promise<Refusal[]>;
  /** Notes a refusal that the admin API gave to a sender of mail. */
  note(device: DeviceKey, refused: RefusedRequest): void;
}

/**
 * The last refusals of each device, in the memory of one thread. Equal ones are counted, not repeated: so a device that
 * tries again and again displaces neither its own other refusals nor those of other devices.
 */
export class Refusals {
  /** The device refused last comes last. */
  readonly #devices = new Map<DeviceKey, Map<string, Refusal>>();

  isKnown(device: DeviceKey): boolean {
    return this.#devices.has(device);
  }

  note(device: DeviceKey, refused: RefusedRequest, nowMs = Date.now()): void {
    const path = refused.error?.path.slice(0, pathLengthMax);
    const name = JSON.stringify([refused.route, refused.code, refused.detail, refused.name, path]);
    const own = this.#devices.get(device) ?? new Map<string, Refusal>();
    const before = own.get(name);
    own.delete(name);
    const error = refused.error && { path: path ?? '', msg: refused.error.msg };
    const { count = 0, firstMs = nowMs } = before ?? {};
    own.set(name, { ...refused, error, count: count + 1, firstMs, lastMs: nowMs });
    if (own.size > refusalsPerDeviceMax) dropFirst(own);
    this.#devices.delete(device);
    this.#devices.set(device, own);
    if (this.#devices.size > devicesMax) dropFirst(this.#devices);
  }

  /** In no particular order. */
  of(device: DeviceKey): Refusal[] {
    return [...(this.#devices.get(device)?.values() ?? [])];
  }
}

function dropFirst(map: Map<string, unknown>): void {
  for (const key of map.keys()) {
    map.delete(key);
    return;
  }
}

/** Joins what several threads have seen of one device; last one first. */
export function joinRefusals(seen: readonly Refusal[]): Refusal[] {
  const joined = new Map<string, Refusal>();
  for (const refusal of seen) {
    const { route, code, detail, name, error } = refusal;
    const key = JSON.stringify([route, code, detail, name, error?.path]);
    const other = joined.get(key);
    const [older, newer] =
      other === undefined || other.lastMs < refusal.lastMs ? [other, refusal] : [refusal, other];
    joined.set(key, {
      ...newer,
      count: newer.count + (older?.count ?? 0),
      firstMs: Math.min(newer.firstMs, older?.firstMs ?? newer.firstMs),
    });
  }
  return [...joined.values()].sort((a, b) => b.lastMs - a.lastMs);
}
