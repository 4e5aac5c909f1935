import { type Static, Type } from 'typebox';
import type { AdminApp, AdminContext, Backup, Handler } from '../../admin-api/request/context.ts';
import { errorAnswers, nullable, time } from '../../admin-api/request/documents.ts';
import { ApiError } from '../../core/errors.ts';

const newBackup = Type.Object(
  {
    folder: Type.String({
      description: "Absolute path on the server's machine, of a folder that is empty or does not exist.",
      pattern: '^/[^\\u0000]*$',
      maxLength: 4_096,
    }),
  },
  { additionalProperties: false },
);
const backupDocument = Type.Object({
  folder: Type.String(),
  state: Type.Union([Type.Literal('running'), Type.Literal('done'), Type.Literal('failed')]),
  started_at: time,
  ended_at: nullable('string'),
  bytes: Type.Integer(),
  bytes_total: Type.Integer({ description: 'Approximate while the state is running.' }),
  reason: nullable('string', { description: 'Why it failed.' }),
});

function describe(backup: Backup): Static<typeof backupDocument> {
  return {
    folder: backup.folder,
    state: backup.state,
    started_at: new Date(backup.startedAtMs).toISOString(),
    ended_at: backup.endedAtMs === undefined ? null : new Date(backup.endedAtMs).toISOString(),
    bytes: backup.bytes,
    bytes_total: backup.bytesTotal,
    reason: backup.reason ?? null,
  };
}

const starting = {
  summary: 'Start a backup',
  body: newBackup,
  response: { 202: backupDocument, ...errorAnswers },
};

const startBackup =
  ({ backups }: AdminContext): Handler<typeof starting> =>
  async ({ body }, reply) => {
    reply.code(202);
    return describe(backups.start(body.folder));
  };

const showing = {
  summary: 'Show the backup under way, or the last one',
  response: { 200: backupDocument, ...errorAnswers },
};

const showBackup =
  ({ backups }: AdminContext): Handler<typeof showing> =>
  async () => {
    const backup = backups.last();
    if (backup === undefined) throw new ApiError('backup_not_found');
    return describe(backup);
  };

/** `/backup`: starts a backup and reports its progress, as it takes longer than a request should. */
export function addBackupRoutes(app: AdminApp, context: AdminContext): void {
  app.post('/backup', { config: { scope: 'admin' }, schema: starting }, startBackup(context));
  app.get('/backup', { config: { scope: 'admin' }, schema: showing }, showBackup(context));
}
