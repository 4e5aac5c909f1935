import type { NodeAddress } from '../connection/connections.ts';
import type { Scenario } from '../scenario/scenario.ts';

/** Task of one process that simulates devices. */
export interface DevicesTask {
  scenario: Scenario;
  salt: string;
  fleetId: string;
  /** Devices whose number leaves this rest when divided by the number of processes. */
  process: number;
  processes: number;
  nodes: readonly NodeAddress[];
  /** Shared connections of this process. */
  connectionsMax: number;
  /** Folder for what devices were answered. */
  folder: string;
  /** Unix time that stamps are counted from. */
  epochMs: number;
}

/** Order to a process of devices. */
export type DevicesOrder =
  | { type: 'begin'; task: DevicesTask }
  | { type: 'ramp'; milliseconds: number }
  | { type: 'storm'; jitterMs: number }
  /** A device whose secret is about to change, and what it is from now on. */
  | { type: 'rotating'; device: number }
  | { type: 'rotated'; device: number; secret: string }
  | { type: 'flood'; device: number; perSecond: number; milliseconds: number }
  | { type: 'finish'; drainMs: number };

/** Routes by which requests are counted, and the simulator's own lag. */
export const routes = [
  'heartbeat',
  'datapoint',
  'message',
  'next',
  'settle',
  'sync',
  'stream',
  'flood',
  'lag',
] as const;
export type Route = (typeof routes)[number];

/** Counts since the begin. */
export interface SimulatedCounts {
  /** Requests that came to be due. */
  due: number;
  /** Unexpected answers. */
  errors: number;
  /** Requests without an answer that nobody here has cut off. */
  failures: number;
  /** Requests that were cut off by a storm, a network that went down, or a fault of the device. */
  cut: number;
  /** Told to come later: 429 and 503. */
  refused: number;
  /** Faulty requests that were refused, as they must be. */
  faulty: number;
  retries: number;
  /** Requests sent later than they were due because this process was behind. */
  late: number;
  /** Readings and requests that were dropped because too many waited. */
  dropped: number;
  skipped: number;
  mails: number;
  crashes: number;
}

/** Counts at the begin. */
export const noCounts: SimulatedCounts = {
  due: 0,
  errors: 0,
  failures: 0,
  cut: 0,
  refused: 0,
  faulty: 0,
  retries: 0,
  late: 0,
  dropped: 0,
  skipped: 0,
  mails: 0,
  crashes: 0,
};

/** Report that a process of devices makes each half second. */
export interface DevicesReport {
  counts: SimulatedCounts;
  online: number;
  connections: number;
  streams: number;
  waiting: number;
  queued: number;
  residentBytes: number;
  /** Memory for its devices, beside what a process needs anyway. */
  stateBytes: number;
  /** Share of the time in which its event loop was busy. */
  busy: number;
  /** Route, response and service time in microseconds, of each answer since the last report. */
  samples: Uint32Array;
  /** The first unexpected answers, in words. */
  complaints: readonly string[];
}

export type DevicesWord =
  | { type: 'ready' }
  | { type: 'report'; report: DevicesReport }
  | { type: 'finished'; unfinished: number };
