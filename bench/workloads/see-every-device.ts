import { dirname } from 'node:path';
import { requestText, writeRequests } from '../load/requests.ts';
import { closedLoop } from '../load/wrk.ts';
import type { Fleetpost } from '../servers/fleetpost.ts';
import { removeFolder } from '../servers/temporary-folder.ts';
import { heartbeat } from './device-requests.ts';

const connections = 64;
/** Some, so that nearly every worker has seen it. */
const sightsPerDevice = 3;
/** Rate that any machine manages. */
const sightsPerSecond = 20_000;

/** Heartbeats of all devices: what the server then knows of them is what it knows after a day of service. */
export async function seeEveryDevice(server: Fleetpost): Promise<void> {
  const { request, status } = heartbeat;
  const requests = writeRequests(server.devices.map((device) => requestText(device, request)));
  const seconds = Math.ceil((sightsPerDevice * server.devices.length) / sightsPerSecond);
  await closedLoop(server, { requests, status, connections, seconds });
  removeFolder(dirname(requests.file));
}
