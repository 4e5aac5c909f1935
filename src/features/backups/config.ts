import { type ConfigOf, text } from '../../core/config/config-key.ts';

export const backupKeys = {
  backupFolder: text(
    '',
    "Folder for backups that name none, each under its time; with `keep`, older ones are removed from it. Absolute. Empty: beside the data folder, under that one's name with `-backups`.",
    { pattern: '^(/.*)?$', patternText: 'an absolute path' },
  ),
};

export type BackupConfig = ConfigOf<typeof backupKeys>;
