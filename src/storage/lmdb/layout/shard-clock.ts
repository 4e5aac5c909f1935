import { correctionMsMax } from '../../../core/clock.ts';
import { pack, unpack } from '../environment/codec.ts';
import type { Table } from '../environment/stored-tables.ts';

/** What a restart needs to know of the clock; stored with every sweep, and at once after a jump. */
interface KeptClock {
  wallMs: number;
  jumpsMs: number;
  aheadMs: number;
  aheadSinceMs: number;
}

/** A server that was off for longer has to see for itself how late it is, before it forgets anything. */
const restartMsMax = 600_000;
const clockKey = Buffer.from('clock');

/**
 * Time as a shard may act on it. The wall clock of a machine can jump: a boot without a battery clock, a bad
 * answer by NTP, an operator's hand. The monotonic clock tells such a jump from time that has passed.
 *
 * Life time is the wall clock less all its jumps: mail and the log are dated by it and expire by it, so that
 * no jump takes a second from their life or adds one. The trusted clock is the wall clock, but a jump ahead
 * counts only once it has lasted for the grace period: idempotency keys, whose times others set, are
 * forgotten by it.
 */
export class ShardClock {
  readonly #table: Table;
  readonly #graceMs: number;
  #wallMs: number;
  #monotonicMs: number;
  #jumpsMs = 0;
  /** How far the wall clock is ahead of what is trusted, and since when, in life time. */
  #aheadMs = 0;
  #aheadSinceMs = 0;
  #untoldJumpMs = 0;

  constructor(table: Table, graceSeconds: number) {
    this.#table = table;
    this.#graceMs = graceSeconds * 1_000;
    this.#wallMs = Date.now();
    this.#monotonicMs = performance.now();
    const bytes = table.getBinary(clockKey);
    if (bytes !== undefined) this.#carryOn(unpack(bytes) as KeptClock);
  }

  lifeMs(): number {
    this.#look();
    return this.#wallMs - this.#jumpsMs;
  }

  /** In life time, a time that somebody named by the wall clock as it is now: equal times stay equal. */
  lifeOf(wallMs: number): number {
    this.#look();
    return wallMs - this.#jumpsMs;
  }

  trustedMs(): number {
    const lifeMs = this.lifeMs();
    if (this.#aheadMs > 0 && lifeMs - this.#aheadSinceMs >= this.#graceMs) this.#aheadMs = 0;
    return this.#wallMs - this.#aheadMs;
  }

  /** The jumps since this was last asked, all together; to be logged, and stored. */
  takeJumpMs(): number {
    this.#look();
    const jumpMs = this.#untoldJumpMs;
    this.#untoldJumpMs = 0;
    return jumpMs;
  }

  /** Inside a write transaction. */
  store(): void {
    const kept: KeptClock = {
      wallMs: this.#wallMs,
      jumpsMs: this.#jumpsMs,
      aheadMs: this.#aheadMs,
      aheadSinceMs: this.#aheadSinceMs,
    };
    this.#table.putSync(clockKey, pack(kept));
  }

  /**
   * No clock tells how long a server was off but the wall clock. It is believed for as long as the grace period:
   * so a command meant for the next minute is not delivered hours later, and a machine that wakes up in another
   * century loses a day of its mail's life at most.
   */
  #carryOn(kept: KeptClock): void {
    this.#jumpsMs = kept.jumpsMs;
    this.#aheadMs = kept.aheadMs;
    this.#aheadSinceMs = kept.aheadSinceMs;
    const passedMs = this.#wallMs - kept.wallMs;
    const offMs = Math.min(Math.max(passedMs, 0), this.#graceMs);
    this.#noteStep(passedMs - offMs);
    if (offMs > restartMsMax) this.#noteAhead(offMs);
  }

  #look(): void {
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
    this.#untoldJumpMs += stepMs;
    this.#noteAhead(stepMs);
  }

  #noteAhead(stepMs: number): void {
    this.#aheadMs = Math.max(0, this.#aheadMs + stepMs);
    if (stepMs > 0) this.#aheadSinceMs = this.#wallMs - this.#jumpsMs;
  }
}

/** The sum of the wall clock's jumps: what makes a time of life one that a person can read. */
export function storedJumpsMs(table: Table): number {
  const bytes = table.getBinary(clockKey);
  return bytes === undefined ? 0 : (unpack(bytes) as KeptClock).jumpsMs;
}

/** Whether a record of the table is a clock that can be carried on. */
export function isClockRecord(key: Buffer, value: Buffer): boolean {
  const { wallMs, jumpsMs, aheadMs, aheadSinceMs } = unpack(value) as KeptClock;
  return key.equals(clockKey) && [wallMs, jumpsMs, aheadMs, aheadSinceMs].every(Number.isFinite);
}

/** A new shard goes by the clock that its mail was dated by; one that has a clock has lived through the same jumps. */
export function carryClock(source: Table, target: Table): void {
  const bytes = source.getBinary(clockKey);
  if (bytes !== undefined && !target.doesExist(clockKey)) target.putSync(clockKey, bytes);
}
