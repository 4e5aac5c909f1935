import { freePort } from '../../src/device/simulator/run/free-port.ts';
import { certificate } from './certificate.ts';
import { generateDevices } from './devices.ts';
import { Peer } from './peer.ts';
import { startScript } from './server-process.ts';
import type { Subject } from './subject.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** A constant answer over TLS from the HTTP library that Fleetpost uses: the floor of what it can reach. */
export const bareUws: Subject = {
  name: 'bare uWebSockets.js',
  durability: 'none',
  constantStatus: 201,
  missing: () => undefined,
  async start({ shards, devices, tls }) {
    const files = tls ?? (await certificate());
    const port = await freePort();
    const file = new URL('bare-uws-process.ts', import.meta.url);
    const starting = Array.from({ length: shards }, () => startScript(file, { port, tls: files }));
    const processes = await Promise.all(starting);
    for (const { firstLine } of processes) await firstLine;
    return new Peer({
      port,
      tls: files,
      devices: generateDevices(devices),
      processes,
      folder: temporaryFolder(),
    });
  },
};
