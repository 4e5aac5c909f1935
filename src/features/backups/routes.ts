import type { AdminApp, Handler } from '../../admin-api/request/context.ts';
import { routesOf } from '../../admin-api/request/route.ts';
import { timeTextOf } from '../../admin-api/request/times.ts';
import { errorAnswers } from '../../contract/document.ts';
import { type BackupDocument, backupDocument, newBackupBody } from '../../contract/server.ts';
import { ApiError } from '../../core/errors.ts';
import type { Backup, Backups } from './service.ts';

interface Needs {
  backups: Backups;
}

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

const starting = {
  summary: 'Start a backup',
  body: newBackupBody,
  response: { 202: backupDocument, ...errorAnswers },
};

const startBackup =
  ({ backups }: Needs): Handler<typeof starting> =>
  async ({ body }, reply) => {
    if (body.folder !== undefined && body.keep !== undefined) {
      throw new ApiError('invalid_body', {
        msg: 'keep is for backups in backupFolder: leave folder out, or keep.',
      });
    }
    reply.code(202);
    return describe(backups.start(body));
  };

const showing = {
  summary: 'Show the backup under way, or the last one',
  response: { 200: backupDocument, ...errorAnswers },
};

const showBackup =
  ({ backups }: Needs): Handler<typeof showing> =>
  async () => {
    const backup = backups.last();
    if (backup === undefined) throw new ApiError('backup_not_found');
    return describe(backup);
  };

/** `/backup`: starts a backup and reports its progress, as it takes longer than a request should. */
export function addBackupRoutes(app: AdminApp, context: Needs): void {
  const route = routesOf(app);
  route('POST', '/backup', 'admin', starting, startBackup(context));
  route('GET', '/backup', 'admin', showing, showBackup(context));
}
