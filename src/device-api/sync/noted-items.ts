import type { ApiError } from '../../core/errors.ts';
import { type DeviceKey, schemaNamePattern } from '../../core/identity.ts';
import {
  type Refusals,
  type RefusedRequest,
  refusalKey,
  refusalsPerDeviceMax,
} from '../../domain/devices/refusals.ts';
import type { SettleVerb } from '../../domain/mail/mail.ts';
import { describeError } from '../server/note-refusal.ts';
import { isVerb } from './judged-settlements.ts';

type Kind = Pick<RefusedRequest, 'route' | 'name'>;

const ofSync: Kind = { route: 'POST /v1/sync', name: undefined };

function memberOf(item: unknown, name: string): unknown {
  return ((item ?? {}) as Record<string, unknown>)[name];
}

/** What of a record's own route would be told. */
function kindOfRecord(item: unknown): Kind {
  const schema = memberOf(item, 'schema');
  const name = typeof schema === 'string' && schemaNamePattern.test(schema) ? schema : undefined;
  const kind = memberOf(item, 'kind');
  if (kind === 'datapoint') return { route: 'POST /v1/datapoint/:schema_name', name };
  return kind === 'message' ? { route: 'POST /v1/msg/:schema_name', name } : ofSync;
}

const settleRoutes: Readonly<Record<SettleVerb, Kind>> = {
  ack: { route: 'PUT /v1/mailbox/ack/:mail_id', name: undefined },
  reject: { route: 'PUT /v1/mailbox/reject/:mail_id', name: undefined },
  requeue: { route: 'PUT /v1/mailbox/requeue/:mail_id', name: undefined },
};

function kindOfSettlement(item: unknown): Kind {
  const verb = memberOf(item, 'verb');
  return isVerb(verb) ? settleRoutes[verb] : ofSync;
}

type Errors = readonly (ApiError | undefined)[];

/**
 * Notes what became of a sync's records as if each had come by its own route, so that an operator is told the same; of one
 * whose kind is not known as the sync's. `errors` has one for each, undefined for one that was accepted.
 */
export function noteRecords(
  refusals: Refusals,
  device: DeviceKey,
  records: readonly unknown[],
  errors: Errors,
): void {
  noteItems(refusals, device, errors, (index) => kindOfRecord(records[index]));
}

/** Likewise of its settlements. */
export function noteSettlements(
  refusals: Refusals,
  device: DeviceKey,
  settlements: readonly unknown[],
  errors: Errors,
): void {
  noteItems(refusals, device, errors, (index) => kindOfSettlement(settlements[index]));
}

function noteItems(
  refusals: Refusals,
  device: DeviceKey,
  errors: Errors,
  kindAt: (index: number) => Kind,
): void {
  const accepted = new Map<string, Kind>();
  const refused = new Map<string, RefusedItems>();
  const wasRefused = refusals.wasRefused(device);
  for (const [index, error] of errors.entries()) {
    if (error === undefined && !wasRefused) continue;
    const kind = kindAt(index);
    if (error === undefined) accepted.set(`${kind.route} ${kind.name}`, kind);
    else count(refused, { ...kind, ...describeError(error) });
  }
  const nowMs = Date.now();
  // The first would be forgotten at once.
  for (const { last, items } of [...refused.values()].slice(-refusalsPerDeviceMax)) {
    refusals.note(device, last, nowMs, items);
  }
  for (const kind of accepted.values()) refusals.noteAcceptedPart(device, kind);
}

/** Items of a sync that are refused for the same. */
interface RefusedItems {
  last: RefusedRequest;
  items: number;
}

function count(refused: Map<string, RefusedItems>, last: RefusedRequest): void {
  const key = refusalKey(last);
  const { items = 0 } = refused.get(key) ?? {};
  refused.set(key, { last, items: items + 1 });
}
