import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { sleep } from '../../../core/async.ts';
import { type CheckResult, checkFleet } from '../check/fleet-check.ts';
import type { NodeAddress } from '../connection/connections.ts';
import type { DevicesTask } from '../devices/orders.ts';
import { plansOf } from '../devices/plan.ts';
import {
  type Assertion,
  type CheckedAssertion,
  checkAssertions,
  readAssertions,
} from '../scenario/assertion.ts';
import type { Scenario } from '../scenario/scenario.ts';
import { type AdminAccess, PatientAdmin } from './admin-access.ts';
import { Conductor } from './conductor.ts';
import { DeviceProcesses } from './device-processes.ts';
import { RunFigures } from './figures.ts';
import { MailFeed } from './mail-feed.ts';
import type { OwnServers } from './own-servers.ts';
import { createSimulatedFleet, importSimulatedDevices } from './provision.ts';

/** Time that what was begun has to come to its end. */
const drainMs = 90_000;
/** Time that the servers of a run may be away, for its operator. */
const patienceMs = 60_000;
/** Shared connections of all processes. */
export const sharedConnectionsUsual = 1_000;

/** Servers on which a fleet is simulated. */
export interface SimulationTarget {
  /** Clients of the servers that are up now. */
  admins(): readonly AdminAccess[];
  nodes: readonly NodeAddress[];
  /** There if the run has started them itself, and may kill them. */
  servers: OwnServers | undefined;
}

export interface SimulationOptions {
  processes?: number | undefined;
  connections?: number | undefined;
}

/** Receives the progress of a run. */
export interface SimulationListener {
  onPhase(text: string): void;
  onFleet(fleetId: string): void;
  onEvent(text: string): void;
}

/** Result of a run. */
export interface SimulationResult {
  fleetId: string;
  figures: RunFigures;
  check: CheckResult;
  assertions: CheckedAssertion[];
  /** Requests that were never answered. */
  unfinished: number;
  mailsQueued: number;
  mailsRefused: number;
  kills: number;
  processes: number;
}

/** A run of a scenario: from an empty fleet to the check of what it has left. */
export class Simulation {
  readonly figures = new RunFigures();
  readonly #scenario: Scenario;
  readonly #target: SimulationTarget;
  readonly #listener: SimulationListener;
  readonly #assertions: readonly Assertion[];
  readonly #processCount: number;
  readonly #connections: number;
  readonly #admin: PatientAdmin;

  /** @throws OperatorError for a scenario that cannot be run. */
  constructor(
    scenario: Scenario,
    target: SimulationTarget,
    listener: SimulationListener,
    { processes, connections = sharedConnectionsUsual }: SimulationOptions = {},
  ) {
    this.#assertions = readAssertions(scenario.assert);
    // A schema that nothing can be made of, or an unknown figure, is said before anything is done.
    plansOf(scenario);
    this.figures.findings = { lost: 0, doubled: 0, out_of_order: 0, unknown: 0 };
    checkAssertions(this.#assertions, this.figures);
    this.#scenario = scenario;
    this.#target = target;
    this.#listener = listener;
    this.#processCount = Math.min(scenario.devices, processes ?? availableParallelism());
    this.#connections = connections;
    this.#admin = new PatientAdmin(() => target.admins(), patienceMs);
  }

  /** Runs it to its end, or until the signal; the check comes in both cases. @throws OperatorError */
  async run(signal: AbortSignal): Promise<SimulationResult> {
    const folder = mkdtempSync(join(tmpdir(), 'fleetpost-simulation-'));
    try {
      return await this.#run(folder, signal);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  async #run(folder: string, signal: AbortSignal): Promise<SimulationResult> {
    const { figures } = this;
    const scenario = this.#scenario;
    const salt = randomBytes(16).toString('hex');
    const fleetId = await this.#provision(salt);
    const epochMs = Date.now() - 1;
    const tasks = this.#tasks({ folder, salt, fleetId, epochMs });
    using processes = await DeviceProcesses.start(tasks, (index, report) => figures.take(index, report));
    figures.begin();
    this.#listener.onPhase('running');
    const feed = new MailFeed(this.#admin, fleetId, scenario, figures);
    const conductor = new Conductor({
      admin: this.#admin,
      fleetId,
      scenario,
      processes,
      processCount: this.#processCount,
      servers: this.#target.servers,
      onEvent: (text) => this.#listener.onEvent(text),
    });
    const ending = new AbortController();
    const until = AbortSignal.any([signal, ending.signal]);
    const work = Promise.all([feed.run(until), conductor.run(until)]);
    const over = sleep(scenario.milliseconds, until);
    const { servers } = this.#target;
    await Promise.race([over, processes.ended, servers?.ended ?? over, failureOf(work)]);
    ending.abort();
    figures.end();
    this.#listener.onPhase('letting what was begun come to its end');
    await work;
    const unfinished = await processes.finish(drainMs);
    this.#listener.onPhase('checking what was answered against the log and the mailboxes');
    const check = await this.#check({ folder, fleetId, epochMs, feed, conductor });
    figures.findings = check.findings.counts;
    return {
      fleetId,
      figures,
      check,
      unfinished,
      assertions: checkAssertions(this.#assertions, figures),
      mailsQueued: [...feed.sent.queued.values()].reduce((sum, { length }) => sum + length, 0),
      mailsRefused: feed.sent.refused,
      kills: this.#target.servers?.kills ?? 0,
      processes: this.#processCount,
    };
  }

  async #provision(salt: string): Promise<string> {
    const [admin] = this.#target.admins();
    if (admin === undefined) throw new Error('there is no server');
    const scenario = this.#scenario;
    const fleetId = await createSimulatedFleet(admin, scenario);
    this.#listener.onFleet(fleetId);
    this.#listener.onPhase(`making ${scenario.devices} devices`);
    await importSimulatedDevices(admin, fleetId, scenario, salt);
    return fleetId;
  }

  #tasks(common: Pick<DevicesTask, 'folder' | 'salt' | 'fleetId' | 'epochMs'>): DevicesTask[] {
    const { nodes } = this.#target;
    return Array.from({ length: this.#processCount }, (_, process) => ({
      ...common,
      scenario: this.#scenario,
      process,
      processes: this.#processCount,
      nodes,
      connectionsMax: Math.max(1, Math.floor(this.#connections / this.#processCount)),
    }));
  }

  #check({
    folder,
    fleetId,
    epochMs,
    feed,
    conductor,
  }: {
    folder: string;
    fleetId: string;
    epochMs: number;
    feed: MailFeed;
    conductor: Conductor;
  }): Promise<CheckResult> {
    const [admin] = this.#target.admins();
    if (admin === undefined) throw new Error('no server of the run is up');
    const fed = new Set(this.#scenario.profiles.map(({ mail }) => mail?.name));
    return checkFleet({
      admin,
      fleetId,
      devices: this.#scenario.devices,
      folder,
      processes: this.#processCount,
      epochMs,
      mails: feed.sent,
      broadcasts: conductor.broadcasts.filter(({ name }) => !fed.has(name)),
    });
  }
}

/** Rejects as the work does, and else never settles. */
function failureOf(work: Promise<unknown>): Promise<never> {
  return new Promise((_, reject) => {
    work.catch(reject);
  });
}
