import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that take more than half a minute, most of which they wait: the longest first, those of a project together. */
export const longest = [
  'nodes/leader.nodes.slow',
  'nodes/faults.nodes.slow',
  'maintenance/reshard-databases.store.slow',
  'maintenance/copy/copy.store.slow',
  'packaging/installation.system',
  'clients/conformance.system',
  'console/idle.system',
  'admin-api/operator-siege.slow',
  'admin-api/server/admin-port.slow',
  'device/agent/socket.slow',
  'device/simulator/run/simulation.system',
  'console/workshop.system',
  'console/set-up.system',
  'console/tasks.system',
  'console/desk-screens.system',
  'features/actions/compiler.slow',
  'storage/lmdb/full-disk.folder.system',
  'server/supervisor.folder.slow',
  'maintenance/upgrade-folder/upgrade-folder.folder.slow',
  'device-api/restarts.slow',
  'maintenance/reshard-folder/consumer-cursors.folder.slow',
  'maintenance/reshard-folder/action-cursors.folder.slow',
  'threads/watchdog.slow',
  'server/certificates/acme.system',
  'server/certificates/certificate.slow',
];

/**
 * Begins with the files that take longest, beside which the others compute: begun among the last, each would be what the
 * whole run waits for in the end. Vitest knows durations only where it ran before, and CI never did. It ends a process
 * when the next file is of another project, and each costs what it imports and a server: so the project of the last of
 * them goes on, and then one after another.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const at = longest.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
      return at === -1 ? longest.length : at;
    };
    const sorted = (await super.sort(files)).sort((one, other) => place(one) - place(other));
    const last = sorted.findLast((file) => place(file) < longest.length)?.project;
    const isLater = (file: TestSpecification): number =>
      Number(place(file) === longest.length && file.project !== last);
    return sorted.sort((one, other) => isLater(one) - isLater(other));
  }
}
