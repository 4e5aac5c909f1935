import { type Requests, requestText, writeRequests } from '../load/requests.ts';
import type { Conditions } from '../result.ts';
import { Fleetpost } from '../servers/fleetpost.ts';
import type { Started } from '../servers/started.ts';
import { payload, type Workload } from './device-requests.ts';

/** How many devices take turns. */
export const devices = 1_000;

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
