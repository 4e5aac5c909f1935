import type { BenchmarkOptions } from '../benchmark.ts';
import { type Requests, requestText, writeRequests } from '../load/requests.ts';
import type { Conditions } from '../result.ts';
import { Fleetpost, fleetpost } from '../servers/fleetpost.ts';
import { nginx } from '../servers/nginx.ts';
import type { Started } from '../servers/started.ts';
import type { Subject } from '../servers/subject.ts';
import { payload, type Workload } from './device-requests.ts';

/** How many devices take turns. */
export const devices = 1_000;

/** nginx, with as many processes as Fleetpost has workers, and Fleetpost after it. */
export function besideNginx({ size }: BenchmarkOptions): { subject: Subject; shards: number }[] {
  const shardCounts = size === 'short' ? [1] : [1, 2];
  return shardCounts.flatMap((shards) => [nginx, fleetpost].map((subject) => ({ subject, shards })));
}

/** A workload ready to be sent to a server. */
export interface Target extends Started {
  workload: Workload;
  requests: Requests;
  status: number;
}

/** Builds the requests of all the server's devices, and queues the mail that the workload needs. */
export async function aim(workload: Workload, started: Started): Promise<Target> {
  const { server, subject } = started;
  if (workload.hasMail && server instanceof Fleetpost) {
    await server.enqueue(server.devices.map((device) => ({ device, payload })));
  }
  const requests = writeRequests(server.devices.map((device) => requestText(device, workload.request)));
  return { ...started, workload, requests, status: subject.constantStatus ?? workload.status };
}

export function conditionsOf({ workload, subject, shards }: Target): Conditions {
  const { isDurable, payloadBytes } = workload;
  return {
    shards,
    devices,
    ...(payloadBytes !== undefined && { payloadBytes }),
    ...(isDurable && { durability: subject.durability }),
  };
}
