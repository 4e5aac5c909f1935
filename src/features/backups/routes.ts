import type { Handlers } from '../../admin-api/request/routes.ts';
import { timeTextOf } from '../../admin-api/request/times.ts';
import type { BackupDocument, backupRoutes } from '../../contract/server.ts';
import { ApiError } from '../../core/errors.ts';
import type { Backup, Backups } from './backup.ts';

function describe(backup: Backup): BackupDocument {
  return {
    folder: backup.folder,
    state: backup.state,
    started_at: timeTextOf(backup.startedAtMs),
    ended_at: timeTextOf(backup.endedAtMs),
    bytes: backup.bytes,
    bytes_total: backup.bytesTotal,
    reason: backup.reason ?? null,
    removed: backup.removed,
  };
}

/** Handles `/backup`. */
export function backupHandlers({ backups }: { backups: Backups }): Handlers<typeof backupRoutes> {
  return {
    'POST /backup': async ({ body }, reply) => {
      if (body.folder !== undefined && body.keep !== undefined) {
        throw new ApiError('invalid_body', {
          msg: 'keep is for backups in backupFolder: leave folder out, or keep.',
        });
      }
      reply.code(202);
      return describe(backups.start(body));
    },
    'GET /backup': async () => {
      const backup = backups.last();
      if (backup === undefined) throw new ApiError('backup_not_found');
      return describe(backup);
    },
  };
}
