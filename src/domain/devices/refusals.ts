import type { CredentialDetail, ErrorCode, FieldError } from '../../core/errors.ts';
import { addToGroup } from '../../core/groups.ts';
import { type DeviceKey, fleetIdOf } from '../../core/identity.ts';
import { DeviceMarks } from './device-marks.ts';
import { LimitedRequests, type RequestCounts, sumOfCounts } from './limited-requests.ts';

/** Maximum devices that one thread remembers; beyond, one of the fleet refused longest ago is forgotten. */
const devicesMax = 4_096;
/** Maximum devices of one fleet; beyond, the one refused longest ago is forgotten. */
const devicesPerFleetMax = 1_000;
/** Maximum different refusals of a device; beyond, the one seen longest ago is forgotten. */
export const refusalsPerDeviceMax = 16;
/** Maximum length of an error's path, which may have a device's own words in it. */
const pathLengthMax = 256;

/** Tells refusals of a device apart. The path comes last, since it alone may have a space. */
export function refusalKey({
  route,
  name,
  code,
  detail,
  error,
}: Pick<RefusedRequest, 'route' | 'name' | 'code' | 'detail' | 'error'>): string {
  const path = error === undefined ? '' : ` ${error.path.slice(0, pathLengthMax)}`;
  return `${route} ${name ?? ''} ${code} ${detail ?? ''}${path}`;
}

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
  /** What stands there, if it is no object or list. */
  value?: string | undefined;
  /** Name in its path: a schema, or the mail that was sent to it. */
  name?: string | undefined;
  /** Where it came from; undefined if that is not known any more, or it was no request of the device. */
  address?: Uint8Array | undefined;
}

/** Equal refusals of one device, since this node started. */
export interface Refusal extends Omit<RefusedRequest, 'address'> {
  count: number;
  firstMs: number;
  lastMs: number;
  /** Where the last one came from, as far as it is known. */
  lastAddress?: Uint8Array | undefined;
  /**
   * When a request was accepted last, if one was since the first refusal: of the same route and name, or whichever
   * where the credentials were refused.
   */
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

/** Requests of the devices of a fleet that one thread has seen: those refused since a time, or accepted behind a refusal. */
export interface SeenFleet {
  devices: [DeviceKey, SeenRequests][];
  /** True if devices refused since then were forgotten, for want of room. */
  isFull: boolean;
}

/** The refusals of all threads of this node. */
export interface RefusalLog {
  /** Last one first. */
  of(device: DeviceKey): Promise<Refusal[]>;
  /** The devices of a fleet that were refused something since then, with what was, the last one first. */
  ofFleet(fleetId: string, sinceMs: number): Promise<RefusalsOfFleet>;
  /** Notes a refusal that the admin API gave to a sender of mail. */
  note(device: DeviceKey, refused: RefusedRequest): void;
}

/** Refusals of a fleet over all threads. */
export interface RefusalsOfFleet {
  devices: readonly { device: DeviceKey; refusals: readonly Refusal[] }[];
  isFull: boolean;
}

interface RefusedFleet {
  /** The device refused last comes last. */
  readonly devices: Map<DeviceKey, Map<string, Refusal>>;
  /** When a device was refused last that was forgotten since, for want of room. */
  forgottenMs: number;
}

/**
 * The last refusals of each device, in the memory of one thread. Equal ones are counted, not repeated: so a device that
 * tries again and again displaces neither its own other refusals nor those of other devices.
 */
export class Refusals {
  /** The fleet refused last comes last. */
  readonly #fleets = new Map<string, RefusedFleet>();
  #deviceCount = 0;
  /** Accepted requests of devices that any thread has refused something: the one accepted last comes last. */
  readonly #accepted = new Map<DeviceKey, Map<string, AcceptedRequests>>();
  readonly #marks: DeviceMarks;
  readonly #limited = new LimitedRequests();

  /** `marks` has the devices that any thread has refused something. */
  constructor(marks = new DeviceMarks()) {
    this.#marks = marks;
  }

  isKnown(device: DeviceKey): boolean {
    return this.#ownOf(device) !== undefined;
  }

  /** `requests`: so many equal ones at once. */
  note(device: DeviceKey, { address, ...refused }: RefusedRequest, nowMs = Date.now(), requests = 1): void {
    const path = refused.error?.path.slice(0, pathLengthMax);
    const name = refusalKey(refused);
    const fleet = this.#fleetOf(device);
    const known = fleet.devices.get(device);
    const own = known ?? new Map<string, Refusal>();
    const before = own.get(name);
    own.delete(name);
    const error = refused.error && { path: path ?? '', msg: refused.error.msg };
    const { count = 0, firstMs = nowMs } = before ?? {};
    const lastAddress = address ?? before?.lastAddress;
    own.set(name, { ...refused, error, count: count + requests, firstMs, lastMs: nowMs, lastAddress });
    if (own.size > refusalsPerDeviceMax) dropFirst(own);
    fleet.devices.delete(device);
    fleet.devices.set(device, own);
    if (known !== undefined) return;
    this.#marks.add(device);
    this.#deviceCount += 1;
    if (fleet.devices.size > devicesPerFleetMax) this.#forgetOne(fleet);
    else if (this.#deviceCount > devicesMax) this.#forgetOfAny();
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
  noteAccepted(device: DeviceKey, request: Pick<RefusedRequest, 'route' | 'name'>, nowMs = Date.now()): void {
    this.#limited.accepted(device, nowMs);
    this.noteAcceptedPart(device, request, nowMs);
  }

  /** Likewise of what could have been a request, but was a part of another one. */
  noteAcceptedPart(
    device: DeviceKey,
    { route, name }: Pick<RefusedRequest, 'route' | 'name'>,
    nowMs = Date.now(),
  ): void {
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
      refused: [...(this.#ownOf(device)?.values() ?? [])],
      accepted: [...(this.#accepted.get(device)?.values() ?? [])],
    };
  }

  /** What was seen of the devices of a fleet that were refused something since then, here or on another thread. */
  ofFleet(fleetId: string, sinceMs: number, nowMs = Date.now()): SeenFleet {
    const fleet = this.#fleets.get(fleetId);
    const refused = [...(fleet?.devices ?? [])].flatMap(([device, own]) =>
      [...own.values()].some(({ lastMs }) => lastMs >= sinceMs) ? [device] : [],
    );
    const accepted = [...this.#accepted.keys()].filter((device) => fleetIdOf(device) === fleetId);
    return {
      devices: [...new Set([...refused, ...accepted])].map((device) => [device, this.of(device, nowMs)]),
      isFull: fleet !== undefined && fleet.forgottenMs >= sinceMs,
    };
  }

  #ownOf(device: DeviceKey): Map<string, Refusal> | undefined {
    return this.#fleets.get(fleetIdOf(device))?.devices.get(device);
  }

  /** The fleet of a device that is refused now. */
  #fleetOf(device: DeviceKey): RefusedFleet {
    const fleetId = fleetIdOf(device);
    const fleet = this.#fleets.get(fleetId) ?? { devices: new Map(), forgottenMs: Number.NEGATIVE_INFINITY };
    this.#fleets.delete(fleetId);
    this.#fleets.set(fleetId, fleet);
    return fleet;
  }

  #forgetOfAny(): void {
    const [first] = this.#fleets;
    if (first === undefined) return;
    const [fleetId, fleet] = first;
    this.#forgetOne(fleet);
    if (fleet.devices.size === 0) this.#fleets.delete(fleetId);
  }

  #forgetOne(fleet: RefusedFleet): void {
    const [first] = fleet.devices;
    if (first === undefined) return;
    const [device, own] = first;
    fleet.devices.delete(device);
    fleet.forgottenMs = Math.max(...[...own.values()].map(({ lastMs }) => lastMs));
    this.#marks.remove(device);
    this.#deviceCount -= 1;
  }
}

function kindOf({ route, name = '' }: Pick<RefusedRequest, 'route' | 'name'>): string {
  return `${route} ${name}`;
}

function dropFirst(map: Map<string, unknown>): void {
  const [first] = map.keys();
  if (first !== undefined) map.delete(first);
}

/** Joins what several threads have seen of one device; the last refusal first. */
export function joinRefusals(seen: readonly SeenRequests[]): Refusal[] {
  const accepted = acceptedOf(seen);
  const requests = sumOfCounts(seen.map((one) => one.requests));
  const joined = new Map<string, Refusal>();
  for (const refusal of seen.flatMap(({ refused }) => refused)) {
    const { route, code, detail, name, error } = refusal;
    const key = JSON.stringify([route, code, detail, name, error?.path]);
    const other = joined.get(key);
    const [older, newer] =
      other === undefined || other.lastMs < refusal.lastMs ? [other, refusal] : [refusal, other];
    const firstMs = Math.min(newer.firstMs, older?.firstMs ?? newer.firstMs);
    const acceptedMs = accepted(refusal);
    joined.set(key, {
      ...newer,
      count: newer.count + (older?.count ?? 0),
      firstMs,
      acceptedMs: acceptedMs !== undefined && acceptedMs >= firstMs ? acceptedMs : undefined,
      ...(code === 'rate_limited' && { requests }),
    });
  }
  return [...joined.values()].sort((a, b) => b.lastMs - a.lastMs);
}

/** Finds when requests of a refusal's kind were accepted last; of refused credentials, requests of any kind. */
function acceptedOf(seen: readonly SeenRequests[]): (refusal: Refusal) => number | undefined {
  const byKind = new Map<string, number>();
  let lastMs: number | undefined;
  for (const accepted of seen.flatMap((one) => one.accepted)) {
    const kind = kindOf(accepted);
    byKind.set(kind, Math.max(accepted.lastMs, byKind.get(kind) ?? 0));
    lastMs = Math.max(accepted.lastMs, lastMs ?? 0);
  }
  return (refusal) => (refusal.code === 'unauthorized' ? lastMs : byKind.get(kindOf(refusal)));
}

/** Joins what several threads have seen of the devices of a fleet; of those refused, the last one first. */
export function joinFleets(seen: readonly SeenFleet[], sinceMs: number): RefusalsOfFleet {
  const byDevice = new Map<DeviceKey, SeenRequests[]>();
  for (const [device, requests] of seen.flatMap(({ devices }) => devices))
    addToGroup(byDevice, device, requests);
  const devices = [...byDevice].flatMap(([device, requests]) => {
    const refusals = joinRefusals(requests).filter(({ lastMs }) => lastMs >= sinceMs);
    return refusals.length === 0 ? [] : [{ device, refusals }];
  });
  const lastMs = ({ refusals: [last] }: RefusalsOfFleet['devices'][number]): number => last?.lastMs ?? 0;
  return { devices: devices.sort((a, b) => lastMs(b) - lastMs(a)), isFull: seen.some((one) => one.isFull) };
}
