import { correctionMsMax } from '../../../core/clock.ts';
import { pack, unpack } from '../../tables/codec.ts';
import type { Table } from '../environment/stored-tables.ts';

/** The clock's stored state, written with every sweep, and at once after a jump. */
interface StoredClock {
  wallMs: number;
  jumpsMs: number;
  aheadMs: number;
  aheadSinceMs: number;
}

/**
 * After a longer downtime the wall clock is trusted only once the grace period has passed, before any key is
 * forgotten.
 */
const restartMsMax = 600_000;
const clockKey = Buffer.from('clock');

/**
 * The clocks of a shard. A machine's wall clock can jump: a boot without a battery clock, a wrong NTP answer, an
 * operator's change. The monotonic clock distinguishes jumps from elapsed time.
 *
 * Life time is the wall clock minus all its jumps: mail and the log are dated and expire by it, so that a jump
 * neither shortens nor prolongs their life. The trusted clock is the wall clock, but a jump ahead counts only after
 * the grace period: idempotency keys, whose times are set by clients, are forgotten by it.
 */
export class ShardClock {
  readonly #table: Table;
  readonly #graceMs: number;
  #wallMs: number;
  #monotonicMs: number;
  #jumpsMs = 0;
  /** How far the wall clock is ahead of the trusted one, and since when, in life time. */
  #aheadMs = 0;
  #aheadSinceMs = 0;
  #unreportedJumpMs = 0;

  constructor(table: Table, graceSeconds: number) {
    this.#table = table;
    this.#graceMs = graceSeconds * 1_000;
    this.#wallMs = Date.now();
    this.#monotonicMs = performance.now();
    const bytes = table.getBinary(clockKey);
    if (bytes !== undefined) this.#resume(unpack(bytes) as StoredClock);
  }

  lifeMs(): number {
    this.#sample();
    return this.#wallMs - this.#jumpsMs;
  }

  /** Converts a time named by the present wall clock to life time; equal times stay equal. */
  lifeOf(wallMs: number): number {
    this.#sample();
    return wallMs - this.#jumpsMs;
  }

  trustedMs(): number {
    const lifeMs = this.lifeMs();
    if (this.#aheadMs > 0 && lifeMs - this.#aheadSinceMs >= this.#graceMs) this.#aheadMs = 0;
    return this.#wallMs - this.#aheadMs;
  }

  /** The sum of jumps since the last call, to be logged and stored. */
  takeJumpMs(): number {
    this.#sample();
    const jumpMs = this.#unreportedJumpMs;
    this.#unreportedJumpMs = 0;
    return jumpMs;
  }

  /** Stores the clock, inside a write transaction. */
  store(): void {
    const stored: StoredClock = {
      wallMs: this.#wallMs,
      jumpsMs: this.#jumpsMs,
      aheadMs: this.#aheadMs,
      aheadSinceMs: this.#aheadSinceMs,
    };
    this.#table.putSync(clockKey, pack(stored));
  }

  /**
   * Estimates the downtime: only the wall clock can tell, and it is believed up to the grace period. So a command due
   * in the next minute is not delivered hours later, and a machine that wakes up in another century costs its mail a
   * day of life at most.
   */
  #resume(stored: StoredClock): void {
    this.#jumpsMs = stored.jumpsMs;
    this.#aheadMs = stored.aheadMs;
    this.#aheadSinceMs = stored.aheadSinceMs;
    const passedMs = this.#wallMs - stored.wallMs;
    const offMs = Math.min(Math.max(passedMs, 0), this.#graceMs);
    this.#noteStep(passedMs - offMs);
    if (offMs > restartMsMax) this.#noteAhead(offMs);
  }

  #sample(): void {
    const wallMs = Date.now();
    const monotonicMs = performance.now();
    const stepMs = Math.round(wallMs - this.#wallMs - (monotonicMs - this.#monotonicMs));
    this.#wallMs = wallMs;
    this.#monotonicMs = monotonicMs;
    this.#noteStep(stepMs);
  }

  #noteStep(stepMs: number): void {
    if (Math.abs(stepMs) <= correctionMsMax) return;
    this.#jumpsMs += stepMs;
    this.#unreportedJumpMs += stepMs;
    this.#noteAhead(stepMs);
  }

  #noteAhead(stepMs: number): void {
    this.#aheadMs = Math.max(0, this.#aheadMs + stepMs);
    if (stepMs > 0) this.#aheadSinceMs = this.#wallMs - this.#jumpsMs;
  }
}

/** The sum of the wall clock's jumps, which converts life time to wall-clock time. */
export function storedJumpsMs(table: Table): number {
  const bytes = table.getBinary(clockKey);
  return bytes === undefined ? 0 : (unpack(bytes) as StoredClock).jumpsMs;
}

/** True if a record of the table is a valid clock. */
export function isClockRecord(key: Buffer, value: Buffer): boolean {
  const { wallMs, jumpsMs, aheadMs, aheadSinceMs } = unpack(value) as StoredClock;
  return key.equals(clockKey) && [wallMs, jumpsMs, aheadMs, aheadSinceMs].every(Number.isFinite);
}

/**
 * Copies the clock to a new shard, since its mail is dated by it; an existing clock has seen the same jumps and
 * stays.
 */
export function copyClock(source: Table, target: Table): void {
  const bytes = source.getBinary(clockKey);
  if (bytes !== undefined && !target.doesExist(clockKey)) target.putSync(clockKey, bytes);
}
