import type { CredentialDetail, ErrorCode, FieldError } from '../../core/errors.ts';
import type { DeviceKey } from '../../core/identity.ts';
import { DeviceMarks } from './device-marks.ts';
import { LimitedRequests, type RequestCounts, sumOfCounts } from './limited-requests.ts';

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
  /** The credential that was wrong; undefined for other codes. */
  detail?: CredentialDetail | undefined;
  msg: string;
  /** The first part of the body that does not match its schema. */
  error?: FieldError | undefined;
  /** Name in its path: a schema, or the mail that was sent to it. */
  name?: string | undefined;
}

/** Equal refusals of one device, since this node started. */
export interface Refusal extends RefusedRequest {
  count: number;
  firstMs: number;
  lastMs: number;
  /** When a request of the same route and name was accepted last, if one was since the first refusal. */
  acceptedMs?: number | undefined;
  /** All requests of the device in the last minutes, of a refusal for its rate. */
  requests?: RequestCounts | undefined;
}

/** Accepted requests of a device that was refused before: of which kind, and when the last one was. */
export interface AcceptedRequests extends Pick<RefusedRequest, 'route' | 'name'> {
  lastMs: number;
}

/** Requests of a device that one thread has seen, in no particular order. */
export interface SeenRequests {
  refused: Refusal[];
  accepted: AcceptedRequests[];
  requests: RequestCounts;
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
  /** Accepted requests of devices that any thread has refused something: the one accepted last comes last. */
  readonly #accepted = new Map<DeviceKey, Map<string, AcceptedRequests>>();
  readonly #marks: DeviceMarks;
  readonly #limited = new LimitedRequests();

  /** `marks` has the devices that any thread has refused something. */
  constructor(marks = new DeviceMarks()) {
    this.#marks = marks;
  }

  isKnown(device: DeviceKey): boolean {
    return this.#devices.has(device);
  }

  note(device: DeviceKey, refused: RefusedRequest, nowMs = Date.now()): void {
    const path = refused.error?.path.slice(0, pathLengthMax);
    const name = JSON.stringify([refused.route, refused.code, refused.detail, refused.name, path]);
    const known = this.#devices.get(device);
    if (known === undefined) this.#marks.add(device);
    const own = known ?? new Map<string, Refusal>();
    const before = own.get(name);
    own.delete(name);
    const error = refused.error && { path: path ?? '', msg: refused.error.msg };
    const { count = 0, firstMs = nowMs } = before ?? {};
    own.set(name, { ...refused, error, count: count + 1, firstMs, lastMs: nowMs });
    if (own.size > refusalsPerDeviceMax) dropFirst(own);
    this.#devices.delete(device);
    this.#devices.set(device, own);
    if (this.#devices.size <= devicesMax) return;
    const dropped = dropFirst(this.#devices);
    if (dropped !== undefined) this.#marks.remove(dropped);
  }

  /**
   * Counts a request of an authenticated device that was over a rate. Returns how many there were since the device was
   * logged last, if it is to be logged now.
   */
  countLimited(device: DeviceKey, nowMs = Date.now()): number | undefined {
    return this.#limited.refused(device, nowMs);
  }

  /** True if it is worth noting what is accepted of the device. */
  wasRefused(device: DeviceKey): boolean {
    return this.#marks.has(device);
  }

  /** Notes that a request was accepted, of a device that was refused before. */
  noteAccepted(
    device: DeviceKey,
    { route, name }: Pick<RefusedRequest, 'route' | 'name'>,
    nowMs = Date.now(),
  ): void {
    this.#limited.accepted(device, nowMs);
    const own = this.#accepted.get(device) ?? new Map<string, AcceptedRequests>();
    const kind = kindOf({ route, name });
    own.delete(kind);
    own.set(kind, { route, name, lastMs: nowMs });
    if (own.size > refusalsPerDeviceMax) dropFirst(own);
    this.#accepted.delete(device);
    this.#accepted.set(device, own);
    if (this.#accepted.size > devicesMax) dropFirst(this.#accepted);
  }

  of(device: DeviceKey, nowMs = Date.now()): SeenRequests {
    return {
      requests: this.#limited.of(device, nowMs),
      refused: [...(this.#devices.get(device)?.values() ?? [])],
      accepted: [...(this.#accepted.get(device)?.values() ?? [])],
    };
  }
}

function kindOf({ route, name = '' }: Pick<RefusedRequest, 'route' | 'name'>): string {
  return `${route} ${name}`;
}

function dropFirst<K extends string>(map: Map<K, unknown>): K | undefined {
  const [first] = map.keys();
  if (first !== undefined) map.delete(first);
  return first;
}

/** Joins what several threads have seen of one device; the last refusal first. */
export function joinRefusals(seen: readonly SeenRequests[]): Refusal[] {
  const acceptedMs = new Map<string, number>();
  for (const accepted of seen.flatMap((one) => one.accepted)) {
    const kind = kindOf(accepted);
    acceptedMs.set(kind, Math.max(accepted.lastMs, acceptedMs.get(kind) ?? 0));
  }
  const requests = sumOfCounts(seen.map((one) => one.requests));
  const joined = new Map<string, Refusal>();
  for (const refusal of seen.flatMap(({ refused }) => refused)) {
    const { route, code, detail, name, error } = refusal;
    const key = JSON.stringify([route, code, detail, name, error?.path]);
    const other = joined.get(key);
    const [older, newer] =
      other === undefined || other.lastMs < refusal.lastMs ? [other, refusal] : [refusal, other];
    joined.set(key, {
      ...newer,
      count: newer.count + (older?.count ?? 0),
      firstMs: Math.min(newer.firstMs, older?.firstMs ?? newer.firstMs),
      acceptedMs: acceptedMs.get(kindOf(refusal)),
      ...(code === 'rate_limited' && { requests }),
    });
  }
  return [...joined.values()].sort((a, b) => b.lastMs - a.lastMs);
}
