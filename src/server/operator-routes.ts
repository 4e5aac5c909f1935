import { consoleCodeHandlers } from '../admin-api/console/login-routes.ts';
import { deviceExportHandlers } from '../admin-api/import-export/device-export.ts';
import { deviceImportHandlers } from '../admin-api/import-export/import.ts';
import { attentionHandlers } from '../admin-api/monitoring/attention.ts';
import { diagnosisHandlers } from '../admin-api/monitoring/diagnosis.ts';
import { pulseHandlers } from '../admin-api/monitoring/pulse.ts';
import { refusalHandlers } from '../admin-api/monitoring/refusals.ts';
import type { MetricSet } from '../admin-api/request/metric-set.ts';
import { addRoutes } from '../admin-api/request/routes.ts';
import { mailDeadLetterHandlers, selectionBytesMax } from '../admin-api/routes/dead-letters.ts';
import { deviceHandlers } from '../admin-api/routes/devices.ts';
import { fleetHandlers } from '../admin-api/routes/fleets.ts';
import { holdHandlers } from '../admin-api/routes/hold.ts';
import { lockoutHandlers } from '../admin-api/routes/lockouts.ts';
import { mailHandlers } from '../admin-api/routes/mail.ts';
import { receiptHandlers } from '../admin-api/routes/receipts.ts';
import { schemaCheckHandlers } from '../admin-api/routes/schema-check.ts';
import { schemaHandlers } from '../admin-api/routes/schemas.ts';
import { tokenHandlers } from '../admin-api/routes/tokens.ts';
import { serverHandlers } from '../admin-api/server/about-server.ts';
import { deviceEndpointHandlers } from '../admin-api/server/device-endpoint.ts';
import type { RouteGroups } from '../admin-api/server/server.ts';
import { topHandlers } from '../admin-api/server/top.ts';
import { auditRoutes } from '../contract/access/audit.ts';
import { lockoutRoutes } from '../contract/access/lockout.ts';
import { consoleCodeRoutes } from '../contract/access/login.ts';
import { claimTokenRoutes, tokenRoutes } from '../contract/access/token.ts';
import { actionRoutes } from '../contract/action.ts';
import { actionDeadLetterRoutes, actionRunRoutes, actionStateRoutes } from '../contract/action-run.ts';
import { broadcastRoutes } from '../contract/broadcast.ts';
import { consumerRoutes } from '../contract/consumer.ts';
import { mailDeadLetterRoutes } from '../contract/dead-letter.ts';
import { deviceRoutes } from '../contract/device.ts';
import { deviceExportRoutes, deviceImportRoutes } from '../contract/device-transfer.ts';
import { fleetRoutes } from '../contract/fleet.ts';
import { forwarderRoutes } from '../contract/forwarder.ts';
import { mailRoutes, receiptRoutes } from '../contract/mail.ts';
import { attentionRoutes } from '../contract/monitoring/attention.ts';
import { diagnosisRoutes } from '../contract/monitoring/diagnosis.ts';
import { pulseRoutes } from '../contract/monitoring/pulse.ts';
import { refusalRoutes } from '../contract/monitoring/refusal.ts';
import { seriesRoutes } from '../contract/monitoring/series.ts';
import { recordRoutes } from '../contract/record.ts';
import { schemaCheckRoutes, schemaRoutes } from '../contract/schema.ts';
import {
  backupRoutes,
  deviceEndpointRoutes,
  holdRoutes,
  serverRoutes,
  topRoutes,
} from '../contract/server.ts';
import { attentionToActions } from '../features/actions/attention.ts';
import { addActionMetrics } from '../features/actions/metrics.ts';
import { actionBodyLimits, actionHandlers } from '../features/actions/routes.ts';
import { actionDeadLetterHandlers, actionRunHandlers } from '../features/actions/run-routes.ts';
import { actionStateHandlers } from '../features/actions/state-routes.ts';
import { auditHandlers } from '../features/audit/routes.ts';
import { addBackupMetrics } from '../features/backups/metrics.ts';
import { backupHandlers } from '../features/backups/routes.ts';
import { addBroadcastMetrics } from '../features/broadcasts/metrics.ts';
import { broadcastBodyBytesMax, broadcastHandlers } from '../features/broadcasts/routes.ts';
import { claimTokenHandlers } from '../features/claiming/routes.ts';
import { attentionToConsumers } from '../features/consumers/attention.ts';
import { addConsumerMetrics } from '../features/consumers/metrics.ts';
import { consumerHandlers } from '../features/consumers/routes.ts';
import { attentionToForwarders } from '../features/forwarders/attention.ts';
import { addForwarderMetrics } from '../features/forwarders/metrics.ts';
import { forwarderHandlers } from '../features/forwarders/routes.ts';
import { recordHandlers } from '../features/records/routes.ts';
import { seriesHandlers } from '../features/series/routes.ts';
import type { OperatorParts } from './operator-parts.ts';
import { addTraceMetrics } from './trace-export.ts';

/** Lists the routes of the admin API, each group with the parts that it uses. Their order is that of the OpenAPI document. */
export function operatorRoutes(parts: OperatorParts): RouteGroups {
  const { actionWork, config, consumers, counts, forwarderWork } = parts;
  const sources = [
    attentionToActions(actionWork),
    attentionToForwarders(forwarderWork),
    attentionToConsumers(consumers),
  ];
  return {
    documents: [
      (app) => addRoutes(app, fleetRoutes, fleetHandlers(parts, counts)),
      (app) => addRoutes(app, deviceRoutes, deviceHandlers(parts, counts)),
      (app) => addRoutes(app, attentionRoutes, attentionHandlers({ ...parts, sources }, counts)),
      (app) => addRoutes(app, pulseRoutes, pulseHandlers(parts)),
      (app) => addRoutes(app, refusalRoutes, refusalHandlers(parts)),
      (app) => addRoutes(app, diagnosisRoutes, diagnosisHandlers(parts)),
      (app) => addRoutes(app, lockoutRoutes, lockoutHandlers(parts)),
      (app, { exports }) => addRoutes(app, deviceExportRoutes, deviceExportHandlers(parts, exports)),
      (app) => addRoutes(app, receiptRoutes, receiptHandlers(parts)),
      (app) =>
        addRoutes(app, mailDeadLetterRoutes, mailDeadLetterHandlers(parts), {
          'POST /fleets/{fleet_id}/dead-letters:replay': selectionBytesMax,
          'POST /fleets/{fleet_id}/dead-letters:drop': selectionBytesMax,
        }),
      (app) => addRoutes(app, backupRoutes, backupHandlers(parts)),
      (app) => addRoutes(app, topRoutes, topHandlers(parts)),
      (app) => addRoutes(app, serverRoutes, serverHandlers(parts)),
      (app) => addRoutes(app, deviceEndpointRoutes, deviceEndpointHandlers(parts)),
      (app) => addRoutes(app, holdRoutes, holdHandlers(parts)),
      (app, { open }) => addRoutes(app, tokenRoutes, tokenHandlers(parts, open)),
      (app) => config.console && addRoutes(app, consoleCodeRoutes, consoleCodeHandlers(parts)),
      (app) => addRoutes(app, claimTokenRoutes, claimTokenHandlers(parts)),
      (app, { exports }) => addRoutes(app, auditRoutes, auditHandlers(parts, exports)),
      (app) => addRoutes(app, actionRoutes, actionHandlers(parts), actionBodyLimits(config)),
      (app) => addRoutes(app, actionRunRoutes, actionRunHandlers(parts)),
      (app) => addRoutes(app, actionDeadLetterRoutes, actionDeadLetterHandlers(parts)),
      (app) => addRoutes(app, actionStateRoutes, actionStateHandlers(parts)),
      (app) => addRoutes(app, forwarderRoutes, forwarderHandlers(parts)),
      (app) => addRoutes(app, recordRoutes, recordHandlers(parts, app)),
      (app) => addRoutes(app, seriesRoutes, seriesHandlers(parts)),
      (app) => addRoutes(app, consumerRoutes, consumerHandlers(parts)),
      (app) =>
        addRoutes(app, broadcastRoutes, broadcastHandlers(parts), {
          'POST /fleets/{fleet_id}/broadcasts': broadcastBodyBytesMax(config),
        }),
      (app) =>
        addRoutes(app, schemaCheckRoutes, schemaCheckHandlers(parts), {
          // Room for texts with every quote and line end escaped.
          'POST /fleets/{fleet_id}/schemas:check': 2 * (config.schemaBytesMax + config.bodyBytesMax) + 4_096,
        }),
    ],
    imports: [(app) => addRoutes(app, deviceImportRoutes, deviceImportHandlers(app, parts))],
    bytes: [
      (app) =>
        addRoutes(app, schemaRoutes, schemaHandlers(parts), {
          'PUT /fleets/{fleet_id}/schemas/{kind}/{name}': config.schemaBytesMax,
        }),
      (app) =>
        addRoutes(app, mailRoutes, mailHandlers(app, parts), {
          'POST /fleets/{fleet_id}/devices/{device_id}/mail/{name}': config.bodyBytesMax,
        }),
    ],
  };
}

/** Lists the metrics of features, in the order of `/metrics`. */
export function featureMetrics(parts: OperatorParts): readonly ((set: MetricSet) => void)[] {
  return [
    (set) => addBackupMetrics(set, parts),
    (set) => addBroadcastMetrics(set, parts),
    (set) => addTraceMetrics(set, parts),
    (set) => addActionMetrics(set, parts),
    (set) => addForwarderMetrics(set, parts),
    (set) => addConsumerMetrics(set, parts),
  ];
}
