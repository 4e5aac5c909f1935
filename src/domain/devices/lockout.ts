import type { Page } from '../page.ts';

/** An address that is locked out from a device, or from claiming, after too many wrong credentials (D6). */
export interface Lockout {
  /** Undefined for claims with wrong tokens of any fleet. */
  fleetId: string | undefined;
  /** Undefined for claims. */
  deviceId: string | undefined;
  /** The unit that limits count as one address (`clientAddressOf`). */
  address: string;
  /** Wall-clock time. */
  untilMs: number;
}

/** All members that are present must match. */
export interface LockoutFilter {
  fleetId?: string;
  deviceId?: string;
  address?: string;
}

/** The lockouts of this node, which its threads share. */
export interface LockoutList {
  /** Lockouts that are in force. */
  readonly count: number;
  /** Lists in no particular order; each page continues where the one before ended, whatever has changed since. */
  list(filter: LockoutFilter, after: string, limit: number): Page<Lockout>;
  /** Ends lockouts on all threads at once, as if there had been none before; returns their number. */
  lift(filter: LockoutFilter): number;
}
