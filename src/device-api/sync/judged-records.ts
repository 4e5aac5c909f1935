import { setImmediate as nextTurn } from 'node:timers/promises';
import { ApiError, isUnavailable, unavailable } from '../../core/errors.ts';
import { CheckAllowance } from '../../declarations/schema-budgets/check-budget.ts';
import { checkDepth } from '../../declarations/schemas/payload.ts';
import { parseRecordedAt } from '../../domain/records/recorded-at.ts';
import type { SyncRecord } from '../../domain/sync/sync.ts';
import { checkedPayload } from '../endpoints/checked-payload.ts';
import type { HttpContext } from '../server/context.ts';
import { invalid, knownMembers, type SyncBody } from './sync-body.ts';

/** Time after which other requests of the thread have a turn. */
const turnMs = 3;

const membersOfRecord = ['kind', 'schema', 'payload', 'recorded_at'];

/** What is stored of a sync's records, and why the others are not. */
export interface JudgedRecords {
  /** In their order, undefined for one that is refused; without those that must wait. */
  accepted: (SyncRecord | undefined)[];
  /** One for each record, undefined for one that is accepted. */
  errors: (ApiError | undefined)[];
}

/**
 * Judges each record by itself, as its own route would (D29). In a queue, which keeps its order, all wait behind one that
 * cannot be judged now: to store them would be to go past it.
 */
export async function judgeRecords(
  { records, payloadOf, queue }: SyncBody,
  fleetId: string,
  context: Pick<HttpContext, 'fleets' | 'config'>,
): Promise<JudgedRecords> {
  const allowance = CheckAllowance.ofRecords();
  const judged: JudgedRecords = { accepted: [], errors: [] };
  let turnEndsAtMs = performance.now() + turnMs;
  for (const [index, item] of records.entries()) {
    try {
      judged.accepted.push(judge(item, payloadOf(index), fleetId, context, allowance));
      judged.errors.push(undefined);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      judged.errors.push(error);
      if (queue !== undefined && isUnavailable(error)) {
        judged.errors.push(...records.slice(index + 1).map(() => behindAnother));
        break;
      }
      judged.accepted.push(undefined);
    }
    if (performance.now() < turnEndsAtMs) continue;
    await nextTurn();
    turnEndsAtMs = performance.now() + turnMs;
  }
  return judged;
}

const behindAnother = unavailable('A record in front of it in its queue cannot be stored now. Retry later.');

function judge(
  item: unknown,
  bytes: Buffer,
  fleetId: string,
  { fleets, config }: Pick<HttpContext, 'fleets' | 'config'>,
  allowance: CheckAllowance,
): SyncRecord {
  const {
    kind,
    schema,
    payload: value,
    recorded_at: recordedAt,
  } = knownMembers(item, 'A record', membersOfRecord);
  if (kind !== 'datapoint' && kind !== 'message') throw invalid('kind must be datapoint or message.');
  if (typeof schema !== 'string') throw invalid('schema must be a string.');
  if (recordedAt !== undefined && typeof recordedAt !== 'string')
    throw invalid('recorded_at must be a string.');
  checkDepth(bytes);
  const payload = checkedPayload({ kind, schema, value, bytes }, fleetId, fleets, allowance);
  if (recordedAt === undefined) return { kind, schema, payload };
  const { recordedAgeSecondsMax } = config.settings.current;
  const recordedAtMs = parseRecordedAt(recordedAt, Date.now(), recordedAgeSecondsMax);
  return { kind, schema, payload, recordedAtMs };
}
