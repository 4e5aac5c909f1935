import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that take more than half a minute, most of which they wait: the longest first. */
export const longest = [
  'nodes/leader.nodes.slow',
  'packaging/installation.system',
  'clients/conformance.system',
  'console/idle.system',
  'console/tasks.system',
  'admin-api/server/admin-port.slow',
  'features/actions/compiler.slow',
  'console/set-up.system',
  'device/simulator/run/simulation.system',
  'device/agent/socket.slow',
  'maintenance/upgrade-folder/upgrade-folder.folder.slow',
  'device-api/restarts.slow',
  'nodes/faults.nodes.slow',
  'maintenance/reshard-folder/consumer-cursors.folder.slow',
  'maintenance/reshard-folder/action-cursors.folder.slow',
  'threads/watchdog.slow',
  'server/certificates/acme.system',
  'server/certificates/certificate.slow',
];

/**
 * Begins with the files that take longest, beside which the others compute: begun among the last, each would be what the
 * whole run waits for in the end. Vitest knows durations only where it ran before, and CI never did.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const at = longest.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
      return at === -1 ? longest.length : at;
    };
    return (await super.sort(files)).sort((one, other) => place(one) - place(other));
  }
}
