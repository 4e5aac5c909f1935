import type { FastifyRequest } from 'fastify';
import type {
  DroppedLetterDocument,
  LetterSelectionBody,
  mailDeadLetterRoutes,
  ReplayedLetterDocument,
} from '../../contract/dead-letter.ts';
import { ApiError, isUnavailable } from '../../core/errors.ts';
import { groupBy } from '../../core/groups.ts';
import { type DeviceKey, deviceIdOf, deviceKeyOf, fleetIdOf } from '../../core/identity.ts';
import { formatUuid } from '../../core/uuid.ts';
import type { Fleets } from '../../declarations/fleet.ts';
import type { Registry } from '../../declarations/registry.ts';
import { parseMessage } from '../../declarations/schemas/payload.ts';
import type { ReplayOutcome } from '../../domain/mail/mail.ts';
import type { Shards } from '../../domain/shard.ts';
import { countsOf } from '../auth/audit-hook.ts';
import type { AdminApiConfig } from '../config.ts';
import { countDeadLetters } from '../monitoring/dead-letter-count.ts';
import { deviceOfRequest } from '../request/admin-app.ts';
import { documentBytesMax } from '../request/bodies.ts';
import type { Handlers } from '../request/routes.ts';
import type { Turn } from '../request/turn.ts';
import {
  checkSelection,
  deadLetterFilterOf,
  describeLetter,
  formatBulkCursor,
  listDeadLetters,
  parseBulkCursor,
} from './dead-letter-list.ts';
import { mailIdOf } from './receipts.ts';

interface Parts {
  config: AdminApiConfig;
  fleets: Fleets;
  registry: Registry;
  shards: Shards;
}

const limitDefault = 100;
/** Limit for the body of a selection: fits 1,000 letters by id, of some 80 bytes each. */
export const selectionBytesMax = 2 * documentBytesMax;
/** Devices of one call whose letters are processed concurrently. */
const concurrency = 32;

interface Letter {
  device: DeviceKey;
  mailId: Buffer;
}

/** Resolves a selection to the letters of this call and the cursor of the next one. */
async function select(
  { shards }: Parts,
  fleetId: string,
  selection: LetterSelectionBody,
  turn: Turn,
): Promise<{ letters: Letter[]; next: string | null }> {
  checkSelection(selection);
  const { letters, filter, limit = limitDefault } = selection;
  if (letters === undefined) {
    const { after, diedBeforeMs } = parseBulkCursor(selection.after ?? '');
    const { toMs = diedBeforeMs, ...rest } = deadLetterFilterOf(fleetId, filter ?? {});
    const bounded = { ...rest, toMs: Math.min(toMs, diedBeforeMs) };
    const page = await listDeadLetters(
      shards.all,
      { fleetId, filter: bounded, order: 'oldest', after },
      limit,
      turn,
    );
    const next = page.next && formatBulkCursor({ after: page.next, diedBeforeMs });
    return { letters: page.items, next };
  }
  const named = letters.map(({ device_id, mail_id }) => ({
    device: deviceKeyOf(fleetId, device_id),
    mailId: mailIdOf(mail_id),
  }));
  return { letters: named, next: null };
}

async function replay(
  { config, fleets, shards }: Parts,
  { device, mailId }: Letter,
): Promise<ReplayedLetterDocument> {
  const about = { mail_id: formatUuid(mailId), device_id: deviceIdOf(device) };
  const shard = shards.of(device);
  const letter = await shard.deadLetters.get(device, mailId);
  if (letter === undefined) return { ...about, result: 'not_found' };
  const fleet = fleets.get(fleetIdOf(device));
  try {
    // The schema may have changed since.
    const { name, payload } = letter;
    fleets.checkMail(fleetIdOf(device), name, parseMessage(payload) ?? {}, payload.length);
    const outcome = await shard.deadLetters.replay({
      device,
      mailId,
      ttlSeconds: fleet?.mailTtlSeconds ?? config.settings.current.mailTtlSeconds,
      mailboxMailsMax: fleet?.mailboxMailsMax ?? config.settings.current.mailboxMailsMax,
    });
    if (outcome.result === 'queued') {
      return { ...about, result: 'replayed', new_mail_id: formatUuid(outcome.mailId) };
    }
    return { ...about, result: refusalOf(outcome.result) };
  } catch (error) {
    return { ...about, result: resultOf(error) };
  }
}

async function drop({ shards }: Parts, { device, mailId }: Letter): Promise<DroppedLetterDocument> {
  const about = { mail_id: formatUuid(mailId), device_id: deviceIdOf(device) };
  try {
    const isDropped = await shards.of(device).deadLetters.drop(device, mailId);
    return { ...about, result: isDropped ? 'dropped' : 'not_found' };
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    return { ...about, result: 'unavailable' };
  }
}

/** Details for the audit log. */
function aboutOf(
  { filter }: LetterSelectionBody,
  items: readonly { mail_id: string; device_id: string; result: string }[],
): Record<string, string | number> {
  const counts = countsOf(items.map(({ result }) => result));
  if (filter !== undefined) return { selected: JSON.stringify(filter), ...counts };
  const [first] = items;
  if (first === undefined || items.length > 1) return { selected: 'by id', ...counts };
  return { device_id: first.device_id, mail_id: first.mail_id, ...counts };
}

function refusalOf(
  result: Exclude<ReplayOutcome['result'], 'queued'>,
): Exclude<ReplayedLetterDocument['result'], 'replayed'> {
  if (result === 'mail_not_found') return 'not_found';
  // A replay is never delayed.
  return result === 'delayed_full' ? 'mailbox_full' : result;
}

/** Converts an error of one letter to its result; unexpected errors are rethrown. */
function resultOf(error: unknown): 'schema_mismatch' | 'unavailable' {
  if (error instanceof ApiError && error.code === 'schema_mismatch') return 'schema_mismatch';
  if (isUnavailable(error)) return 'unavailable';
  throw error;
}

/** Processes several devices concurrently, but the letters of each in sequence, so that they keep their order. */
async function inOrderOfDevice<T>(
  letters: readonly Letter[],
  act: (letter: Letter) => Promise<T>,
): Promise<T[]> {
  const results: T[] = [];
  const waiting = [...groupBy(letters.entries(), ([, { device }]) => device).values()];
  const work = async (): Promise<void> => {
    for (let own = waiting.shift(); own !== undefined; own = waiting.shift()) {
      for (const [index, letter] of own) results[index] = await act(letter);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  return results;
}

/** Replays or drops the selected letters; answers what became of each. */
async function settle<T extends { mail_id: string; device_id: string; result: string }>(
  parts: Parts,
  request: Pick<FastifyRequest, 'audited' | 'turn'> & {
    params: { fleet_id: string };
    body: LetterSelectionBody;
  },
  act: (parts: Parts, letter: Letter) => Promise<T>,
): Promise<{ items: T[]; next: string | null }> {
  const { params, body, audited, turn } = request;
  const { fleetId } = parts.registry.fleet(params.fleet_id).fleet;
  const { letters, next } = await select(parts, fleetId, body, turn);
  const items = await inOrderOfDevice(letters, (letter) => act(parts, letter));
  audited.about = aboutOf(body, items);
  return { items, next };
}

/** Handles `/fleets/{fleet_id}/dead-letters`. */
export function mailDeadLetterHandlers(parts: Parts): Handlers<typeof mailDeadLetterRoutes> {
  const { registry, shards } = parts;
  return {
    'GET /fleets/{fleet_id}/dead-letters': async ({
      params,
      turn,
      query: { after, limit, order, ...query },
    }) => {
      const { fleetId } = registry.fleet(params.fleet_id).fleet;
      const filter = deadLetterFilterOf(fleetId, query);
      const page = await listDeadLetters(shards.all, { fleetId, filter, order, after }, limit, turn);
      return { items: page.items.map(describeLetter), next: page.next };
    },
    'GET /fleets/{fleet_id}/dead-letters:count': async ({ params, turn, query }) => {
      const { fleetId } = registry.fleet(params.fleet_id).fleet;
      return countDeadLetters(shards.all, fleetId, deadLetterFilterOf(fleetId, query), turn);
    },
    'GET /fleets/{fleet_id}/dead-letters/{device_id}/{mail_id}': async ({ params }, reply) => {
      const device = deviceOfRequest(parts, params);
      const letter = await shards.of(device).deadLetters.get(device, mailIdOf(params.mail_id));
      if (letter === undefined) throw new ApiError('letter_not_found');
      const { name, reason, died_at } = describeLetter(letter);
      reply.headers({ 'X-Mail-Name': name, 'X-Mail-Reason': reason, 'X-Mail-Died-At': died_at });
      return reply.type('application/json').send(letter.payload);
    },
    'POST /fleets/{fleet_id}/dead-letters:replay': (request) => settle(parts, request, replay),
    'POST /fleets/{fleet_id}/dead-letters:drop': (request) => settle(parts, request, drop),
  };
}
