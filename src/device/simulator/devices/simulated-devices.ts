import { headerOf } from '../connection/client-connection.ts';
import { hash32 } from '../payload/noise.ts';
import { parseDuration } from '../scenario/quantity.ts';
import { profileOf } from '../scenario/scenario.ts';
import {
  firstSendTimer,
  heartbeatTimer,
  isBackingOff,
  isBusy,
  isRotating,
  isStarted,
  isUp,
  mailTimer,
  networkTimer,
  retryTimer,
  wantsHeartbeat,
} from './device-states.ts';
import { Flood } from './flood.ts';
import { MailClient } from './mail-client.ts';
import type { DevicesOrder } from './orders.ts';
import { pauseOf, type Tempo } from './plan.ts';
import { ReadingSender } from './sender.ts';
import { SyncClient } from './sync-client.ts';
import { shownBody, type World } from './world.ts';

/** After it has started, a device waits up to so long before it connects, so that not all come at once. */
const firstMsMax = 10_000;
const finishTurnMs = 50;

/** All devices of a process: what their timers, their network and the orders of the run make of them. */
export class SimulatedDevices {
  readonly sender: ReadingSender;
  readonly mail: MailClient;
  readonly #sync: SyncClient;
  /** Devices whose network is up. */
  online = 0;
  readonly #world: World;
  readonly #floods = new Set<Flood>();
  #isFinishing = false;

  constructor(world: World) {
    this.#world = world;
    this.sender = new ReadingSender(world);
    this.mail = new MailClient(world);
    this.#sync = new SyncClient(world, this.sender, this.mail);
    world.onIdle = (device) => this.#go(device);
    const { scenario } = world.task;
    const ramp = scenario.events.find((event) => event.event === 'ramp' && parseDuration(event.at) === 0);
    const overMs = ramp?.event === 'ramp' ? parseDuration(ramp.over) : firstMsMax;
    for (let device = 0; device < world.states.count; device += 1) {
      world.states.profile[device] = profileOf(scenario, world.numberOf(device));
      world.states.setTimer(device, networkTimer, world.draw(device) * overMs);
    }
  }

  /** Does what is due by now; answers by how much the most belated was late. */
  advance(): number {
    const { states } = this.#world;
    let lagMs = 0;
    states.timers.advance(Math.floor(this.#world.nowMs()), (timer, dueMs) => {
      const device = Math.floor(timer / states.timersPerDevice);
      lagMs = Math.max(lagMs, this.#world.nowMs() - dueMs);
      this.#onTimer(device, timer % states.timersPerDevice, dueMs);
    });
    for (const flood of this.#floods) if (!flood.advance()) this.#floods.delete(flood);
    return lagMs;
  }

  /** Does what the run wants of all devices at once. */
  obey(order: DevicesOrder): void {
    if (order.type === 'ramp') this.#ramp(order.milliseconds);
    else if (order.type === 'storm') this.#storm(order.jitterMs);
    else if (order.type === 'flood') {
      this.#floods.add(new Flood(this.#world, order.device, order.perSecond, order.milliseconds));
    } else if (order.type === 'rotating') {
      this.#world.states.set(order.device, isRotating, true);
    } else if (order.type === 'rotated') {
      this.#world.secrets.set(this.#world.numberOf(order.device), order.secret);
      this.#world.states.set(order.device, isRotating, false);
    }
  }

  /** Lets everything that was begun come to its end; answers how much did not within that time. */
  async finish(drainMs: number): Promise<number> {
    const { states } = this.#world;
    this.#isFinishing = true;
    this.#floods.clear();
    this.mail.finish();
    for (let device = 0; device < states.count; device += 1) {
      states.clearTimer(device, networkTimer);
      if (states.has(device, isStarted) && !states.has(device, isUp)) this.#goUp(device);
    }
    const endMs = performance.now() + drainMs;
    const isDone = (): boolean => this.sender.queued === 0 && this.mail.deciding === 0 && !this.#isAnyBusy();
    while (!isDone() && performance.now() < endMs) {
      await new Promise((resolve) => setTimeout(resolve, finishTurnMs));
    }
    return this.sender.finish() + this.mail.close();
  }

  #isAnyBusy(): boolean {
    return this.#world.states.flags.some((flags) => (flags & isBusy) !== 0);
  }

  #onTimer(device: number, timer: number, dueMs: number): void {
    const world = this.#world;
    const { states } = world;
    if (timer === retryTimer) {
      states.set(device, isBackingOff, false);
      this.#go(device);
    }
    if (this.#isFinishing || timer === retryTimer) return;
    if (timer !== networkTimer) world.noteLag(dueMs);
    const plan = world.planOf(device);
    if (timer === networkTimer) this.#toggle(device);
    else if (timer === mailTimer) this.mail.onTimer(device, dueMs);
    else if (timer === heartbeatTimer) this.#beat(device, plan.heartbeat, dueMs);
    else {
      const beat = plan.sends[timer - firstSendTimer];
      if (beat === undefined) return;
      this.#again(device, timer, beat, dueMs);
      this.sender.take(device, beat, dueMs);
      this.#go(device);
    }
  }

  #beat(device: number, beat: Tempo | undefined, dueMs: number): void {
    const { states, counts } = this.#world;
    if (beat === undefined) return;
    this.#again(device, heartbeatTimer, beat, dueMs);
    if (states.has(device, isUp)) this.#wantHeartbeat(device, dueMs);
    else counts.skipped += 1;
    this.#go(device);
  }

  #wantHeartbeat(device: number, dueMs: number): void {
    const { states } = this.#world;
    states.want(device, wantsHeartbeat, true);
    states.heartbeatDueMs[device] = dueMs;
  }

  /** Sets the next time from when this one was due, so that a delay moves no later one. */
  #again(device: number, timer: number, beat: Tempo, dueMs: number): void {
    const world = this.#world;
    const pause = pauseOf(beat, world.draw(device), world.task.epochMs + dueMs);
    world.states.setTimer(device, timer, dueMs + pause);
  }

  #toggle(device: number): void {
    const world = this.#world;
    const { upMs, downMs } = world.planOf(device);
    const isNowUp = !world.states.has(device, isUp);
    if (isNowUp) this.#goUp(device);
    else this.#goDown(device);
    if (downMs === 0) return;
    const mean = isNowUp ? upMs : downMs;
    const pause = pauseOf({ everyMs: mean, spread: 'poisson' }, world.draw(device), 0);
    world.states.setTimer(device, networkTimer, world.nowMs() + pause);
  }

  #goUp(device: number): void {
    const { states } = this.#world;
    const world = this.#world;
    const plan = world.planOf(device);
    this.online += 1;
    states.set(device, isUp, true);
    states.readyMs[device] = world.nowMs();
    if (!states.has(device, isStarted)) {
      states.set(device, isStarted, true);
      for (const [index, beat] of [plan.heartbeat, ...plan.sends].entries()) {
        const timer = index === 0 ? heartbeatTimer : firstSendTimer + index - 1;
        const pause = beat?.spread === 'fixed' ? beat.everyMs * world.draw(device) : undefined;
        const first = beat && (pause ?? pauseOf(beat, world.draw(device), world.task.epochMs));
        if (first !== undefined) states.setTimer(device, timer, world.nowMs() + first);
      }
    }
    this.mail.begin(device);
    this.#go(device);
  }

  #goDown(device: number): void {
    this.online -= 1;
    this.#world.states.set(device, isUp, false);
    this.#world.connections.dropDevice(device);
  }

  /** All lose their power, and come back one after the other. */
  #ramp(milliseconds: number): void {
    const { states } = this.#world;
    this.#world.connections.dropAll();
    for (let device = 0; device < states.count; device += 1) {
      if (states.has(device, isUp)) this.#goDown(device);
      states.setTimer(device, networkTimer, this.#world.nowMs() + this.#world.draw(device) * milliseconds);
    }
  }

  /** All lose their connections, and come back with a heartbeat: at once, or each within its jitter. */
  #storm(jitterMs: number): void {
    const world = this.#world;
    const { states } = world;
    world.connections.dropAll();
    for (let device = 0; device < states.count; device += 1) {
      if (!states.has(device, isUp)) continue;
      const backMs = world.nowMs() + world.draw(device) * jitterMs;
      states.readyMs[device] = backMs;
      this.#wantHeartbeat(device, backMs);
      states.set(device, isBackingOff, true);
      states.setTimer(device, retryTimer, backMs);
      states.setTimer(device, mailTimer, backMs);
    }
  }

  /** The next request of a device that may send one. What is decided goes first, what is only a sign of life last. */
  #go(device: number): void {
    const { states } = this.#world;
    if (states.has(device, isBusy | isBackingOff) || !states.has(device, isUp)) return;
    if (this.#world.planOf(device).isSync ? this.#sync.next(device) : this.#nextByRoute(device)) return;
    if (states.wantsAny(device, wantsHeartbeat) && !this.#isFinishing) this.#heartbeat(device);
  }

  #nextByRoute(device: number): boolean {
    return this.mail.settle(device) || this.sender.next(device) || this.mail.fetch(device);
  }

  #heartbeat(device: number): void {
    const world = this.#world;
    const { states } = world;
    states.want(device, wantsHeartbeat, false);
    world.request(device, {
      route: 'heartbeat',
      method: 'POST',
      path: '/v1/heartbeat',
      headers: 'Content-Length: 0\r\n',
      dueMs: Math.max(states.heartbeatDueMs[device] ?? 0, states.readyMs[device] ?? 0),
      onAnswer: (status, text) => {
        if (status !== 201) world.complain(`heartbeat was answered ${status}: ${shownBody(text)}`);
        const isWaiting = headerOf(text, 'x-messages-available') === 'true';
        if (isWaiting && world.planOf(device).mail?.by === 'heartbeat') this.mail.onAvailable(device);
      },
      onLater: () => {},
    });
  }
}

/** Finds the process of a device of the fleet and its number there, for orders about single ones. */
export function processOf(device: number, processes: number): { process: number; local: number } {
  return { process: device % processes, local: Math.floor(device / processes) };
}

/** A device that a seed picks out of all. */
export function pickDevice(seed: number, number: number, devices: number): number {
  return hash32(seed, number, 0x7e57) % devices;
}
