import { bodyTextOf, documentBytesMax } from '../../admin-api/request/bodies.ts';
import { deviceFilterOf, type FilterParts, selectedFilter } from '../../admin-api/request/device-filter.ts';
import { describeDevices } from '../../admin-api/request/device-state.ts';
import { idempotencyOf, parseDeliverAt, replayHeader } from '../../admin-api/request/mail-request.ts';
import type { HandlerOf, Handlers } from '../../admin-api/request/routes.ts';
import { timeTextOf } from '../../admin-api/request/times.ts';
import {
  type BroadcastDocument,
  type BroadcastMailDocument,
  type BroadcastOutcomesDocument,
  broadcastMailStates,
  type broadcastRoutes,
  type NewBroadcastBody,
} from '../../contract/broadcast.ts';
import { targetText } from '../../contract/columns/mail.ts';
import { ApiError } from '../../core/errors.ts';
import { type DeviceKey, deviceIdOf, deviceKeyOf } from '../../core/identity.ts';
import { formatUuid } from '../../core/uuid.ts';
import type { DeclaredHold } from '../../declarations/declared-hold.ts';
import type { Fleet, Fleets } from '../../declarations/fleet.ts';
import type { Registry } from '../../declarations/registry.ts';
import { emptyPayload, isEmpty } from '../../declarations/schemas/payload.ts';
import type { DeviceStatus } from '../../domain/devices/device.ts';
import type { RefusalLog } from '../../domain/devices/refusals.ts';
import type { BroadcastMail } from '../../domain/mail/broadcast.ts';
import type { Shards } from '../../domain/shard.ts';
import type { BroadcastService, BroadcastStatus, BroadcastTarget } from './broadcast-service.ts';
import type { BroadcastConfig } from './config.ts';
import { broadcastKeyOf } from './local-broadcast-service.ts';
import { BroadcastOutcomes } from './outcomes.ts';

interface Parts extends FilterParts {
  config: BroadcastConfig;
  broadcasts: BroadcastService;
  fleets: Fleets;
  hold: DeclaredHold;
  refusals: RefusalLog;
  registry: Registry;
  shards: Shards;
}

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const openings = new Set([0x7b, 0x5b]);
const closings = new Set([0x7d, 0x5d]);
const spaces = new Set([0x20, 0x09, 0x0a, 0x0d]);

/**
 * Extracts the value of a member from JSON text byte for byte (D11); of duplicates the last one, as `JSON.parse` does.
 * `text` must be well-formed: it has been parsed already.
 */
function memberBytes(text: Buffer, name: string): Buffer | undefined {
  let found: Buffer | undefined;
  let at = afterSpace(text, afterSpace(text, 0) + 1);
  while (text[at] === quote) {
    const keyEnd = endOfString(text, at);
    const key: unknown = JSON.parse(text.toString('utf8', at, keyEnd));
    const start = afterSpace(text, afterSpace(text, keyEnd) + 1);
    const end = endOfValue(text, start);
    if (key === name) found = text.subarray(start, end);
    at = afterSpace(text, end);
    if (text[at] === comma) at = afterSpace(text, at + 1);
  }
  return found;
}

function afterSpace(text: Buffer, from: number): number {
  let at = from;
  while (spaces.has(text[at] ?? 0)) at += 1;
  return at;
}

function endOfString(text: Buffer, from: number): number {
  let at = from + 1;
  while (at < text.length && text[at] !== quote) at += text[at] === backslash ? 2 : 1;
  return at + 1;
}

function endOfValue(text: Buffer, from: number): number {
  let depth = 0;
  let at = from;
  while (at < text.length) {
    const byte = text[at] ?? 0;
    if (byte === quote) at = endOfString(text, at);
    else if (depth === 0 && (byte === comma || closings.has(byte) || spaces.has(byte))) return at;
    else {
      if (openings.has(byte)) depth += 1;
      else if (closings.has(byte)) depth -= 1;
      at += 1;
    }
    if (depth === 0 && (byte === quote || closings.has(byte))) return at;
  }
  return at;
}

/** Bytes per device id in a list, with quotes, comma and spaces. */
const listedBytes = 24;

function describeTarget(to: BroadcastStatus['to']): BroadcastDocument['to'] {
  return 'listed' in to ? { devices: to.listed } : (to.as as BroadcastDocument['to']);
}

function describe(status: BroadcastStatus, isHeld: boolean): BroadcastDocument {
  const { request, to, endedAtMs } = status;
  const { deliverAtMs } = request;
  return {
    broadcast_id: status.id,
    name: request.name,
    to: describeTarget(to),
    payload_bytes: status.payloadBytes,
    ttl_seconds: request.ttlSeconds ?? null,
    mailbox_mails_max: request.mailboxMailsMax ?? null,
    requeues_max: request.requeuesMax ?? null,
    replace_key: request.replaceKey ?? null,
    deliver_at: timeTextOf(deliverAtMs),
    pause_after: request.pauseAfter ?? null,
    state: isHeld && status.state === 'running' ? 'held' : status.state,
    devices: status.devices ?? null,
    queued: status.queued,
    refused: status.refused,
    reasons: { ...status.reasons },
    created_at: timeTextOf(status.createdAtMs),
    ended_at: timeTextOf(endedAtMs),
  };
}

/** Describes a broadcast for the audit log. */
function aboutOf({ id, request, state, to, queued }: BroadcastStatus): Record<string, string | number> {
  return { broadcast_id: id, name: request.name, to: targetText({ to: describeTarget(to) }), state, queued };
}

/** Deduplicates the devices of a list. */
async function targetOf(
  { devices, ...selector }: NewBroadcastBody['to'],
  fleet: Fleet,
  parts: Parts,
): Promise<BroadcastTarget> {
  const filter = selectedFilter(selector, devices !== undefined, '/to');
  if (filter !== undefined) {
    const isAll = Object.keys(filter).length === 0;
    return { filter: await deviceFilterOf(fleet, filter, parts), as: isAll ? { all: true } : filter };
  }
  const { broadcastDevicesMax } = parts.config;
  const listed = devices ?? [];
  if (listed.length > broadcastDevicesMax) {
    throw new ApiError('request_too_large', {
      msg: `Too many devices in the list (broadcastDevicesMax is ${broadcastDevicesMax}). Use a filter instead.`,
    });
  }
  return { devices: [...new Set(listed)] };
}

type Routes = typeof broadcastRoutes;

const startBroadcast =
  (parts: Parts): HandlerOf<Routes, 'POST /fleets/{fleet_id}/broadcasts'> =>
  async ({ params, headers, body, audited }, reply) => {
    const { config, fleets, hold, registry, broadcasts } = parts;
    const { fleet } = registry.fleet(params.fleet_id);
    const { fleetId } = fleet;
    const {
      name,
      ttl_seconds: ttlSeconds,
      mailbox_mails_max: mailsMax,
      requeues_max: requeuesMax,
      replace_key: replaceKey,
      deliver_at: deliverAt,
      pause_after: pauseAfter,
    } = body;
    const to = await targetOf(body.to, fleet, parts);
    const text = bodyTextOf(body);
    const isPayload = body.payload !== undefined && body.payload !== null && !isEmpty(body.payload);
    const bytes = (isPayload && memberBytes(text, 'payload')) || emptyPayload;
    if (bytes.length > config.bodyBytesMax) {
      throw new ApiError('request_too_large', {
        msg: `The payload is too large (bodyBytesMax is ${config.bodyBytesMax}).`,
      });
    }
    fleets.checkMail(fleetId, name, body.payload ?? {}, bytes.length);
    const idempotency = idempotencyOf(headers, 'broadcast', {}, text);
    const { status, isReplay } = await broadcasts.put(fleetId, {
      name,
      payload: new Uint8Array(bytes),
      to,
      ...(ttlSeconds !== undefined && { ttlSeconds }),
      ...(mailsMax !== undefined && { mailboxMailsMax: mailsMax }),
      ...(requeuesMax !== undefined && { requeuesMax }),
      ...(replaceKey !== undefined && { replaceKey }),
      ...(deliverAt !== undefined && { deliverAtMs: parseDeliverAt(deliverAt) }),
      ...(pauseAfter !== undefined && { pauseAfter }),
      ...(idempotency && { idempotency }),
    });
    if (isReplay) reply.header(...replayHeader);
    audited.about = aboutOf(status);
    reply.code(202);
    return describe(status, hold.isHeld);
  };

/** Reads the devices of a page, in its order. */
function statusesOf({ shards }: Parts, devices: readonly DeviceKey[]): Promise<(DeviceStatus | undefined)[]> {
  return Promise.all(devices.map((device) => shards.of(device).devices.get(device)));
}

const listRefusals =
  (parts: Parts): HandlerOf<Routes, 'GET /fleets/{fleet_id}/broadcasts/{broadcast_id}/refusals'> =>
  async ({ params, query: { after, limit } }) => {
    const { broadcasts, registry } = parts;
    const { fleetId } = registry.fleet(params.fleet_id).fleet;
    const { items, next } = await broadcasts.refusals(fleetId, params.broadcast_id, after, limit);
    const statuses = await statusesOf(
      parts,
      items.map(({ deviceId }) => deviceKeyOf(fleetId, deviceId)),
    );
    return {
      items: items.map(({ deviceId, reason }, index) => ({
        device_id: deviceId,
        name: statuses[index]?.name ?? null,
        reason,
      })),
      next,
    };
  };

/** Devices of one page whose refusals are looked up, for which each thread is asked. */
const refusedMax = 100;

/** Finds what holds up those mails that wait. */
function plightsOf(
  { shards, refusals }: Parts,
  mails: readonly BroadcastMail[],
  statuses: readonly (DeviceStatus | undefined)[],
): Promise<Pick<BroadcastMailDocument, 'behind' | 'refused'>[]> {
  let refusedLeft = refusedMax;
  const refusedOf = async (device: DeviceKey, seenMs: number): Promise<string | null> => {
    refusedLeft -= 1;
    const [last] = refusedLeft < 0 ? [] : await refusals.of(device);
    return last === undefined || last.lastMs <= seenMs ? null : (last.detail ?? last.code);
  };
  return Promise.all(
    mails.map(async ({ device, mailId, state }, index) => {
      const status = statuses[index];
      if (state !== 'queued' || status === undefined) return { behind: null, refused: null };
      const { mail: head } = await shards.of(device).mail.head(device);
      const isBehind = head !== undefined && !mailId.equals(head.id);
      return {
        behind: isBehind
          ? { mail_id: formatUuid(head.id), name: head.name, fetch_count: head.fetchCount }
          : null,
        refused: await refusedOf(device, status.lastSeenMs ?? 0),
      };
    }),
  );
}

const listMails =
  (
    parts: Parts,
    outcomes: BroadcastOutcomes,
  ): HandlerOf<Routes, 'GET /fleets/{fleet_id}/broadcasts/{broadcast_id}/mails'> =>
  async ({ params, query: { state = broadcastMailStates, after, limit } }) => {
    const { broadcasts, registry } = parts;
    const { fleet } = registry.fleet(params.fleet_id);
    const fleetId = fleet.fleetId;
    const [, id] = broadcastKeyOf(fleetId, params.broadcast_id);
    await broadcasts.get(fleetId, params.broadcast_id);
    const { items, next } = await outcomes.list(id, new Set(state), deviceKeyOf(fleetId, after), limit);
    const statuses = await statusesOf(
      parts,
      items.map(({ device }) => device),
    );
    const known = statuses.flatMap((status) => status ?? []);
    const described = await describeDevices(parts, fleet, known);
    const devices = new Map(
      described.map(({ device_id, name, enabled, state, last_seen }) => [
        device_id,
        { name, enabled, state, last_seen },
      ]),
    );
    const plights = await plightsOf(parts, items, statuses);
    return {
      items: items.map(({ device, mailId, state: reached, fetchCount }, index) => ({
        device_id: deviceIdOf(device),
        mail_id: formatUuid(mailId),
        state: reached,
        fetch_count: fetchCount,
        device: devices.get(deviceIdOf(device)) ?? null,
        ...(plights[index] ?? { behind: null, refused: null }),
      })),
      next: next === null ? null : deviceIdOf(next as DeviceKey),
    };
  };

/** Returns the limit for the body of a new broadcast. */
export function broadcastBodyBytesMax({ bodyBytesMax, broadcastDevicesMax }: BroadcastConfig): number {
  return documentBytesMax + bodyBytesMax + listedBytes * broadcastDevicesMax;
}

/** Handles `/fleets/{fleet_id}/broadcasts`, and each broadcast by its id. */
export function broadcastHandlers(parts: Parts): Handlers<Routes> {
  const { broadcasts, hold, registry, shards } = parts;
  const outcomes = new BroadcastOutcomes(shards.all);
  const fleetOf = (params: { fleet_id: string }): string => registry.fleet(params.fleet_id).fleet.fleetId;
  const change =
    (
      verb: 'pause' | 'resume' | 'cancel',
    ): HandlerOf<Routes, 'POST /fleets/{fleet_id}/broadcasts/{broadcast_id}/pause'> =>
    async ({ params, audited }) => {
      const status = await broadcasts[verb](fleetOf(params), params.broadcast_id);
      audited.about = aboutOf(status);
      return describe(status, hold.isHeld);
    };
  return {
    'POST /fleets/{fleet_id}/broadcasts': startBroadcast(parts),
    'GET /fleets/{fleet_id}/broadcasts': async ({ params, query: { after, limit } }) => {
      const { items, next } = await broadcasts.list(fleetOf(params), after, limit);
      return { items: items.map((status) => describe(status, hold.isHeld)), next };
    },
    'GET /fleets/{fleet_id}/broadcasts/{broadcast_id}': async ({ params }) =>
      describe(await broadcasts.get(fleetOf(params), params.broadcast_id), hold.isHeld),
    'GET /fleets/{fleet_id}/broadcasts/{broadcast_id}/payload': async ({ params }, reply) => {
      const payload = await broadcasts.payload(fleetOf(params), params.broadcast_id);
      return reply.type('application/json').send(Buffer.from(payload));
    },
    'GET /fleets/{fleet_id}/broadcasts/{broadcast_id}/refusals': listRefusals(parts),
    'GET /fleets/{fleet_id}/broadcasts/{broadcast_id}/mails': listMails(parts, outcomes),
    'GET /fleets/{fleet_id}/broadcasts/{broadcast_id}/outcomes': async ({ params }) => {
      const fleetId = fleetOf(params);
      const [, id] = broadcastKeyOf(fleetId, params.broadcast_id);
      await broadcasts.get(fleetId, params.broadcast_id);
      const counts = await outcomes.count(fleetId, id);
      const all = broadcastMailStates.map((state) => [state, counts.get(state) ?? 0]);
      return Object.fromEntries(all) as BroadcastOutcomesDocument;
    },
    'POST /fleets/{fleet_id}/broadcasts/{broadcast_id}/pause': change('pause'),
    'POST /fleets/{fleet_id}/broadcasts/{broadcast_id}/resume': change('resume'),
    'POST /fleets/{fleet_id}/broadcasts/{broadcast_id}/cancel': change('cancel'),
    'DELETE /fleets/{fleet_id}/broadcasts/{broadcast_id}': async ({ params }, reply) => {
      await broadcasts.delete(fleetOf(params), params.broadcast_id);
      return reply.code(204).send(null);
    },
  };
}
