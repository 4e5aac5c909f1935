import type { auditRoutes } from '../access/audit.ts';
import type { lockoutRoutes } from '../access/lockout.ts';
import type { consoleCodeRoutes, consoleSessionRoutes } from '../access/login.ts';
import type { claimTokenRoutes, tokenRoutes } from '../access/token.ts';
import type { actionRoutes } from '../action.ts';
import type { actionDeadLetterRoutes, actionRunRoutes, actionStateRoutes } from '../action-run.ts';
import type { broadcastRoutes } from '../broadcast.ts';
import type { consumerRoutes } from '../consumer.ts';
import type { mailDeadLetterRoutes } from '../dead-letter.ts';
import type { deviceRoutes } from '../device.ts';
import type { deviceExportRoutes, deviceImportRoutes } from '../device-transfer.ts';
import type { fleetRoutes } from '../fleet.ts';
import type { forwarderRoutes } from '../forwarder.ts';
import type { mailRoutes, receiptRoutes } from '../mail.ts';
import type { attentionRoutes } from '../monitoring/attention.ts';
import type { diagnosisRoutes } from '../monitoring/diagnosis.ts';
import type { pulseRoutes } from '../monitoring/pulse.ts';
import type { refusalRoutes } from '../monitoring/refusal.ts';
import type { seriesRoutes } from '../monitoring/series.ts';
import type { recordRoutes } from '../record.ts';
import type { schemaCheckRoutes, schemaRoutes } from '../schema.ts';
import type { backupRoutes, deviceEndpointRoutes, holdRoutes, serverRoutes, topRoutes } from '../server.ts';

/** Every route of the admin API, by method and path. */
export type AdminRoutes = typeof actionDeadLetterRoutes &
  typeof actionRoutes &
  typeof actionRunRoutes &
  typeof actionStateRoutes &
  typeof attentionRoutes &
  typeof auditRoutes &
  typeof backupRoutes &
  typeof broadcastRoutes &
  typeof claimTokenRoutes &
  typeof consoleCodeRoutes &
  typeof consoleSessionRoutes &
  typeof consumerRoutes &
  typeof deviceRoutes &
  typeof deviceEndpointRoutes &
  typeof deviceExportRoutes &
  typeof deviceImportRoutes &
  typeof diagnosisRoutes &
  typeof fleetRoutes &
  typeof forwarderRoutes &
  typeof holdRoutes &
  typeof lockoutRoutes &
  typeof mailDeadLetterRoutes &
  typeof mailRoutes &
  typeof pulseRoutes &
  typeof receiptRoutes &
  typeof recordRoutes &
  typeof refusalRoutes &
  typeof schemaCheckRoutes &
  typeof schemaRoutes &
  typeof seriesRoutes &
  typeof serverRoutes &
  typeof tokenRoutes &
  typeof topRoutes;
