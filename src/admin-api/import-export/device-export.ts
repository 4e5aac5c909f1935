import type { DeviceExportQuery, deviceExportRoutes } from '../../contract/device-transfer.ts';
import { ApiError } from '../../core/errors.ts';
import { deviceIdOf, fleetIdOf } from '../../core/identity.ts';
import type { Registry } from '../../declarations/registry.ts';
import type { DeviceStatus } from '../../domain/devices/device.ts';
import { descriptionFields, descriptionOf } from '../../domain/devices/device-fields.ts';
import type { DeviceFilter } from '../../domain/devices/device-query.ts';
import type { Shards } from '../../domain/shard.ts';
import { deviceFilterOf, type FilterParts } from '../request/device-filter.ts';
import type { Handlers } from '../request/routes.ts';
import { timeTextOf } from '../request/times.ts';
import type { Transfers } from '../request/transfers.ts';
import type { Turn } from '../request/turn.ts';
import { listDevices } from '../routes/device-list.ts';
import { cellOf, csvLine } from './device-lines.ts';

interface Parts extends FilterParts {
  registry: Registry;
  shards: Shards;
}

/** Devices per chunk of the answer, which takes some milliseconds of this thread. */
const devicesPerChunk = 250;

function header(withDigests: boolean): string {
  const columns = ['fleet_id', 'device_id', ...Object.keys(descriptionFields), 'enabled', 'created_at'];
  return csvLine(withDigests ? [...columns, 'secret_digest'] : columns);
}

function line(status: DeviceStatus, format: DeviceExportQuery['format'], withDigests: boolean): string {
  const { device, enabled, createdAtMs, secretDigests } = status;
  const description = descriptionOf(status);
  const createdAt = timeTextOf(createdAtMs);
  const [digest] = secretDigests;
  const digestText = withDigests && digest !== undefined ? Buffer.from(digest).toString('hex') : undefined;
  if (format === 'csv') {
    const cells = [
      fleetIdOf(device),
      deviceIdOf(device),
      ...Object.values(description).map(cellOf),
      String(enabled),
      createdAt,
    ];
    return csvLine(withDigests ? [...cells, digestText ?? ''] : cells);
  }
  const document = { fleet_id: fleetIdOf(device), device_id: deviceIdOf(device), ...description, enabled };
  return `${JSON.stringify({ ...document, created_at: createdAt, secret_digest: digestText })}\n`;
}

/** Refuses `after` with filters: matching devices come in the order of the index that finds them. @throws ApiError bad_request. */
function checkAfter({ after, format: _, with: __, ...filter }: DeviceExportQuery): void {
  if (after === '' || Object.keys(filter).length === 0) return;
  throw new ApiError('bad_request', {
    msg: '`after` works only for an export of all devices. Omit the filters.',
  });
}

async function* lines(
  shards: Shards,
  filter: DeviceFilter,
  query: DeviceExportQuery,
  { signal, turn }: { signal: AbortSignal; turn: Turn },
  onDevices: (count: number) => void,
): AsyncGenerator<string> {
  const withDigests = query.with === 'digests';
  if (query.format === 'csv') yield header(withDigests);
  let after: string | null = query.after;
  while (after !== null) {
    signal.throwIfAborted();
    const { items, next } = await listDevices(shards.all, filter, after, devicesPerChunk, turn);
    await turn();
    onDevices(items.length);
    if (items.length > 0) yield items.map((item) => line(item, query.format, withDigests)).join('');
    after = next;
  }
}

/** Handles `/fleets/{fleet_id}/devices:export`. */
export function deviceExportHandlers(parts: Parts, exports: Transfers): Handlers<typeof deviceExportRoutes> {
  const { registry, shards } = parts;
  return {
    'GET /fleets/{fleet_id}/devices:export': async ({ params, query, turn, audited: { about } }, reply) => {
      const { fleet } = registry.fleet(params.fleet_id);
      checkAfter(query);
      const type = query.format === 'csv' ? 'text/csv' : 'application/x-ndjson';
      const filter = await deviceFilterOf(fleet, query, parts);
      if (query.with !== undefined) about.with = query.with;
      let devices = 0;
      const onDevices = (count: number): void => {
        devices += count;
        about.devices = devices;
      };
      const answer = exports.begin(reply, fleet.fleetId, (signal) =>
        lines(shards, filter, query, { signal, turn }, onDevices),
      );
      return reply.type(`${type}; charset=utf-8`).send(answer);
    },
  };
}
