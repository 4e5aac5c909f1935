import type { Log } from '../../core/telemetry/log.ts';
import { programVersion } from '../../core/telemetry/version.ts';
import { Audit } from '../../features/audit/audit.ts';
import { openControl, openJournal, openRegistry } from '../../maintenance/environments.ts';
import type { DataFolder } from '../../storage/lmdb/environment/data-folder.ts';
import type { RunningConfig } from '../configuration/config.ts';
import type { ControlPlane } from './control-plane.ts';
import { openDeclarations } from './declarations.ts';

export interface OpenLocalOptions {
  folder: DataFolder;
  config: RunningConfig;
  isBackupRunning(): boolean;
  log: Log;
}

/** Opens the control plane in the data folder, which this process has for itself. @throws OperatorError for damage. */
export function openLocal({ folder, config, isBackupRunning, log }: OpenLocalOptions): ControlPlane {
  const stored = openRegistry(folder.registryFolder, config);
  const declarations = openDeclarations(stored, config, log);
  const journal = openControl(folder.journalFolder('control'), config);
  return {
    ...declarations,
    audit: new Audit(journal, config, log),
    programVersions: async () => [programVersion()],
    async startWork(params) {
      const { startServices } = await import('./services.ts');
      return startServices({
        ...params,
        declarations,
        journal,
        actionJournal: openJournal(folder.journalFolder('actions'), config),
        isBackupRunning,
        config,
        log,
      });
    },
    async close() {
      await journal.close();
      await declarations.close();
    },
  };
}
