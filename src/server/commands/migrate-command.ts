import type { Command } from 'commander';
import { ApiError, OperatorError } from '../../core/errors.ts';
import { createLog } from '../../core/telemetry/log.ts';
import { loadConfig } from '../configuration/config.ts';

interface MigrateFlags {
  config?: string;
  json?: boolean;
}

/** Adds `fleetpost migrate`: migrates the tables of every database of the store to the version of this program. */
export function addMigrateCommand(program: Command): void {
  program
    .command('migrate')
    .description('create the tables in the databases of the store, or migrate them to this version')
    .option('--config <file>', 'configuration file, JSON')
    .option('--json', 'print one JSON document')
    .action(async ({ config, json }: MigrateFlags) => {
      const { values } = loadConfig(config, process.env, {});
      if (values.store.engine !== 'postgres') {
        throw new OperatorError(
          'The store of this configuration is in the data folder, which needs no migration.',
        );
      }
      // Imported here, so that other commands do not load it.
      const { Database } = await import('../../storage/postgres/connection/database.ts');
      const { checkUrl } = await import('../../storage/postgres/connection/database-url.ts');
      for (const url of values.store.shards) checkUrl(url);
      const { migrate, databaseVersion } = await import('../../storage/postgres/schema/migrate.ts');
      const log = createLog(values.logLevel);
      const items: { database: number; version: number; ran: number[] }[] = [];
      for (const [index, url] of values.store.shards.entries()) {
        const database = new Database({
          url,
          connectionsMax: 1,
          timeoutMilliseconds: values.databaseTimeoutMilliseconds,
          log,
        });
        try {
          const ran = await migrate(database);
          items.push({ database: index, version: await databaseVersion(database), ran });
        } catch (error) {
          if (!(error instanceof ApiError)) throw error;
          throw new OperatorError(
            `Database ${index} of the store does not answer or refuses the migration. See the log.`,
          );
        } finally {
          await database.close();
        }
      }
      if (json) return console.log(JSON.stringify({ items, next: null }));
      for (const { database, version, ran } of items) {
        const done = ran.length === 0 ? 'is at' : 'was migrated to';
        console.log(`Database ${database} ${done} version ${version}.`);
      }
    });
}
