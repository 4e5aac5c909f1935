import { performance } from 'node:perf_hooks';
import type { TestDevice } from '../harness/devices/device.ts';
import { RawConnection } from '../harness/devices/raw.ts';
import { datapoint, pause } from '../harness/server/vitals.ts';

export interface Witnessed {
  requests: number;
  p50Ms: number;
  p99Ms: number;
  maxMs: number;
}

/** Pause between two requests of a witness. */
const pauseMs = 5;

/**
 * Devices that behave well: each sends a datapoint, waits for its 201, pauses, and again until the time is
 * over. What they see is what a siege costs others. @throws Error at any other answer.
 */
export async function witness(devices: readonly TestDevice[], seconds: number): Promise<Witnessed> {
  const latencies: number[] = [];
  const endMs = performance.now() + seconds * 1_000;
  await Promise.all(
    devices.map(async (device) => {
      const connection = await RawConnection.open(device.server);
      const request = datapoint(device, '{"witness":1}');
      while (performance.now() < endMs) {
        const startMs = performance.now();
        connection.write(request);
        const { status, body } = await connection.answer();
        if (status !== 201) throw new Error(`a witness got ${status}: ${body}`);
        latencies.push(performance.now() - startMs);
        await pause(pauseMs);
      }
      connection.destroy();
    }),
  );
  latencies.sort((a, b) => a - b);
  const at = (part: number): number => latencies[Math.floor((latencies.length - 1) * part)] ?? Number.NaN;
  return { requests: latencies.length, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1) };
}
