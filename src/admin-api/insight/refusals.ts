import { devicePath, errorAnswers } from '../../contract/document.ts';
import { type RefusalDocument, refusalsDocument } from '../../contract/insight/refusal.ts';
import { ApiError } from '../../core/errors.ts';
import type { Registry } from '../../declarations/registry.ts';
import type { Refusal, RefusalLog } from '../../domain/devices/refusals.ts';
import { type AdminApp, type AllShards, deviceOfRequest, type Handler } from '../request/context.ts';
import { routesOf } from '../request/route.ts';
import { timeTextOf } from '../request/times.ts';

interface Needs {
  refusals: RefusalLog;
  registry: Registry;
  shards: AllShards;
}

function describe({
  route,
  name,
  code,
  detail,
  msg,
  error,
  count,
  firstMs,
  lastMs,
  acceptedMs,
}: Refusal): RefusalDocument {
  return {
    route,
    name: name ?? null,
    error: code,
    detail: detail ?? null,
    msg,
    path: error?.path ?? null,
    path_msg: error?.msg ?? null,
    count,
    first_at: timeTextOf(firstMs),
    last_at: timeTextOf(lastMs),
    accepted_at: timeTextOf(acceptedMs),
  };
}

const listing = {
  summary: 'List the last refused requests of a device',
  description:
    'What this node has refused to the device since it started, and of mail to it, last one first. Equal refusals are counted; each thread keeps up to 16 different ones of a device, for the 4,096 devices refused last.',
  params: devicePath,
  response: { 200: refusalsDocument, ...errorAnswers },
};

const listRefusals =
  (context: Needs): Handler<typeof listing> =>
  async ({ params }) => {
    const device = deviceOfRequest(context, params);
    const found = await context.shards.of(device).devices.credentials(device);
    if (found === undefined) throw new ApiError('device_not_found');
    return { items: (await context.refusals.of(device)).map(describe) };
  };

/** Adds `…/devices/{device_id}/refusals`. */
export function addRefusalRoute(app: AdminApp, context: Needs): void {
  routesOf(app)(
    'GET',
    '/fleets/:fleet_id/devices/:device_id/refusals',
    'read',
    listing,
    listRefusals(context),
  );
}
