import { TimingWheel } from './timing-wheel.ts';

/** Bits of a device's state. */
export const isUp = 1;
/** A request is in flight. */
export const isBusy = 2;
/** It waits until it may try again. */
export const isBackingOff = 4;
/** Its secret is being changed by an operator. */
export const isRotating = 8;
/** It has been up once, and its rhythms run. */
export const isStarted = 16;

/** Bits of what a device is to do when it can. */
export const wantsHeartbeat = 1;
export const wantsNext = 2;
/** To look whether there is mail. */
export const wantsHead = 4;
export const wantsSettlement = 8;

/** Timers that each device has; those behind are of its sends. */
export const heartbeatTimer = 0;
export const networkTimer = 1;
export const mailTimer = 2;
export const retryTimer = 3;
export const firstSendTimer = 4;

/** State of each device, in arrays: some hundred bytes each, and no object while it is idle. */
export class DeviceStates {
  readonly count: number;
  readonly flags: Uint8Array;
  readonly wants: Uint8Array;
  readonly profile: Uint8Array;
  readonly attempts: Uint8Array;
  /** Numbers drawn so far: with the seed they make the next one. */
  readonly draws: Uint32Array;
  /** Readings taken so far. */
  readonly readings: Uint32Array;
  /** The last time that it gave a reading, in milliseconds of the run's epoch: no two are the same. */
  readonly stamp: Uint32Array;
  /** When what it wants was due. */
  readonly heartbeatDueMs: Uint32Array;
  readonly mailDueMs: Uint32Array;
  /** Since when it could send: what was due before is measured from then. */
  readonly readyMs: Uint32Array;
  readonly timers: TimingWheel;
  readonly timersPerDevice: number;

  constructor(count: number, timersPerDevice: number) {
    this.count = count;
    this.flags = new Uint8Array(count);
    this.wants = new Uint8Array(count);
    this.profile = new Uint8Array(count);
    this.attempts = new Uint8Array(count);
    this.draws = new Uint32Array(count);
    this.readings = new Uint32Array(count);
    this.stamp = new Uint32Array(count);
    this.heartbeatDueMs = new Uint32Array(count);
    this.mailDueMs = new Uint32Array(count);
    this.readyMs = new Uint32Array(count);
    this.timersPerDevice = timersPerDevice;
    this.timers = new TimingWheel(count * timersPerDevice);
  }

  /** Bytes of all arrays. */
  get bytes(): number {
    return this.count * 28 + TimingWheel.bytesOf(this.count * this.timersPerDevice);
  }

  has(device: number, flag: number): boolean {
    return ((this.flags[device] ?? 0) & flag) !== 0;
  }

  set(device: number, flag: number, value: boolean): void {
    const flags = this.flags[device] ?? 0;
    this.flags[device] = value ? flags | flag : flags & ~flag;
  }

  wantsAny(device: number, want: number): boolean {
    return ((this.wants[device] ?? 0) & want) !== 0;
  }

  want(device: number, want: number, value: boolean): void {
    const wants = this.wants[device] ?? 0;
    this.wants[device] = value ? wants | want : wants & ~want;
  }

  setTimer(device: number, timer: number, dueMs: number): void {
    this.timers.set(device * this.timersPerDevice + timer, Math.max(0, Math.round(dueMs)));
  }

  clearTimer(device: number, timer: number): void {
    this.timers.clear(device * this.timersPerDevice + timer);
  }
}
