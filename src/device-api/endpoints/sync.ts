import { ApiError } from '../../core/errors.ts';
import { formatUuid } from '../../core/uuid.ts';
import type { SyncSettle } from '../../domain/sync/sync.ts';
import { addBytes } from '../limits/rate-limit.ts';
import { countRequeues } from '../limits/requeue-bytes.ts';
import type { HttpContext } from '../server/context.ts';
import type { DeviceRequest, Endpoint } from '../server/endpoint.ts';
import type { Reply } from '../server/reply.ts';
import { type JudgedRecords, judgeRecords } from '../sync/judged-records.ts';
import { judgeSettlements } from '../sync/judged-settlements.ts';
import { noteRecords, noteSettlements } from '../sync/noted-items.ts';
import { syncReply } from '../sync/sync-answer.ts';
import { bytesBeyond, parseSync, type SyncBody } from '../sync/sync-body.ts';
import { settleErrors } from './settle.ts';

/** `POST /v1/sync`: a whole wake in one request and one transaction (D29, D30, D31). */
export const sync: Endpoint = {
  method: 'POST',
  path: '/v1/sync',
  takesBody: true,
  writes: true,
  async handle(request: DeviceRequest, context: HttpContext): Promise<Reply> {
    const { device, fleetId, cached, shard } = request;
    const { activity, config, fleets, refusals } = context;
    // The library's bytes are gone with the first await.
    const bytes = Buffer.from(request.input.body);
    const body = fleets.parse(fleetId, bytes, parseSync);
    const records = await judgeRecords(body, fleetId, context);
    const settlements = await judgeSettlements(body, request, fleets);
    const accepted = settlements.filter((one): one is SyncSettle => !(one instanceof ApiError));
    const requeued = accepted.filter(({ verb }) => verb === 'requeue').map(({ mailId }) => mailId);
    if (requeued.length > 0) await countRequeues(request, context, requeued);
    // Behind the mail that it requeues, which is refused only for what was counted before.
    addBytes(cached, context, bytesBeyond(body, bytes.length));
    for (const one of accepted) {
      const fetched = activity.takeFetches(cached, one.mailId);
      if (fetched !== undefined) one.fetched = fetched;
    }
    const { queue, mail } = body;
    const wanted = { device, records: records.accepted, queue, settlements: accepted, mail };
    const outcome = await shard.sync(wanted).catch((error: unknown) => {
      for (const { mailId, fetched } of accepted) {
        if (fetched !== undefined) activity.restoreFetches(cached, mailId, fetched);
      }
      throw error;
    });
    for (const { id } of outcome.mailbox?.mails ?? []) activity.fetched(cached, formatUuid(id), id);
    let index = 0;
    const verdict = {
      records: errorsOf(records, body, outcome.queue?.storedTo ?? 0),
      settlements: settlements.map((one) => {
        if (one instanceof ApiError) return one;
        const { result } = outcome.settled[index++] ?? { result: 'not_found' };
        return settleErrors[result];
      }),
    };
    noteRecords(refusals, device, body.records, verdict.records);
    noteSettlements(refusals, device, body.settlements, verdict.settlements);
    return syncReply(verdict, outcome, config.strictStatuses);
  },
};

/** A record that was not judged now, but is stored already, has been answered before. */
function errorsOf(
  { accepted, errors }: JudgedRecords,
  { queue }: SyncBody,
  storedTo: number,
): JudgedRecords['errors'] {
  if (queue === undefined || accepted.length === errors.length) return errors;
  const known = storedTo - queue.seq + 1;
  return errors.map((error, index) => (index >= accepted.length && index < known ? undefined : error));
}
