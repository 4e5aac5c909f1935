import type { Benchmark } from './benchmark.ts';
import { micro } from './micro/index.ts';
import { actions } from './workloads/actions.ts';
import { broadcast } from './workloads/broadcast.ts';
import { calling } from './workloads/calling.ts';
import { requestBenchmark } from './workloads/closed-loop.ts';
import { consoleTasks } from './workloads/console.ts';
import { consoleLive } from './workloads/console-live.ts';
import { devicePages } from './workloads/device-pages.ts';
import { deviceRecords } from './workloads/device-records.ts';
import {
  datapoint,
  datapointWithKey,
  getNext,
  headNext,
  heartbeat,
  message,
} from './workloads/device-requests.ts';
import { disk } from './workloads/disk.ts';
import { engines } from './workloads/engines.ts';
import { eventStreams } from './workloads/event-streams.ts';
import { fleetSize } from './workloads/fleet-size.ts';
import { handshakes } from './workloads/handshakes.ts';
import { latency } from './workloads/latency.ts';
import { ack, cycle } from './workloads/mail.ts';
import { mixedFleet } from './workloads/mixed-fleet.ts';
import { nodes } from './workloads/nodes.ts';
import { peers } from './workloads/peers.ts';
import { resumption } from './workloads/resumption.ts';
import { runawayActions } from './workloads/runaway-actions.ts';
import { shards } from './workloads/shards.ts';
import { sync } from './workloads/sync.ts';
import { wake } from './workloads/wake.ts';

/** Everything that can be measured, in the order of the report. */
export const benchmarks: readonly Benchmark[] = [
  ...[heartbeat, datapoint, datapointWithKey, message, headNext, getNext].map(requestBenchmark),
  sync,
  ack,
  cycle,
  peers,
  shards,
  engines,
  nodes,
  latency,
  eventStreams,
  actions,
  runawayActions,
  broadcast,
  devicePages,
  deviceRecords,
  consoleTasks,
  consoleLive,
  handshakes,
  wake,
  calling,
  resumption,
  mixedFleet,
  fleetSize,
  disk,
  micro,
];
