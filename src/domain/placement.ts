import { type DeviceKey, deviceKeyLength } from '../core/identity.ts';

/**
 * The shard of a device: Lamping and Veach's jump consistent hash (arXiv 1406.2294) over a 64-bit FNV-1a of the
 * device key. It must never change, since stored data depends on it. Growing from n to n+1 shards moves one device in
 * n+1, and only to the new shard.
 */
export function shardOf(device: DeviceKey, shards: number): number {
  if (shards === 1) return 0;
  hash(device);
  let shard = 0;
  let candidate = 0;
  while (candidate < shards) {
    shard = candidate;
    step();
    candidate = Math.floor((shard + 1) * (2 ** 31 / ((high >>> 1) + 1)));
  }
  return shard;
}

/**
 * An unfinished change of the shard count. The complete layout is in force; what exists of the other
 * one must be removed.
 */
export interface Move {
  from: number;
  to: number;
  /** End of the log of each shard in both layouts, when the change began. */
  logEnds: readonly number[];
}

/** The shard of a device among all shards. */
export function shardFor<S>(all: readonly S[], device: DeviceKey): S {
  const shard = all[shardOf(device, all.length)];
  if (shard === undefined) throw new Error('placement names a shard that is not there');
  return shard;
}

/** 64-bit state in two halves: BigInt costs ten times as much. */
let high = 0;
let low = 0;

/** (high, low) = (high, low) * (multiplierHigh, multiplierLow) modulo 2^64. */
function multiply(multiplierHigh: number, multiplierLow: number): void {
  const lowHalf = (low & 0xffff) * (multiplierLow & 0xffff);
  const middle = (low >>> 16) * (multiplierLow & 0xffff) + (lowHalf >>> 16);
  const middleToo = (low & 0xffff) * (multiplierLow >>> 16) + (middle & 0xffff);
  const carry =
    (low >>> 16) * (multiplierLow >>> 16) + Math.floor(middle / 0x10000) + Math.floor(middleToo / 0x10000);
  high = (carry + Math.imul(high, multiplierLow) + Math.imul(low, multiplierHigh)) >>> 0;
  low = Math.imul(low, multiplierLow) >>> 0;
}

/**
 * FNV-1a, offset basis cbf29ce484222325, prime 100000001b3. The prime has so few bits set that the product with its
 * lower half is exact as a number, at a third of the cost.
 */
function hash(device: DeviceKey): void {
  high = 0xcbf29ce4;
  low = 0x84222325;
  for (let i = 0; i < deviceKeyLength; i += 1) {
    low = (low ^ device.charCodeAt(i)) >>> 0;
    const product = low * 0x1b3;
    high = (Math.imul(high, 0x1b3) + (low << 8) + Math.floor(product / 2 ** 32)) >>> 0;
    low = product >>> 0;
  }
}

/** The paper's generator: key = key * 2862933555777941757 + 1. */
function step(): void {
  multiply(0x27bb2ee6, 0x87b0b0fd);
  low = (low + 1) >>> 0;
  if (low === 0) high = (high + 1) >>> 0;
}
