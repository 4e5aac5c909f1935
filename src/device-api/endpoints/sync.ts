import { ApiError } from '../../core/errors.ts';
import { formatUuid, parseUuid } from '../../core/uuid.ts';
import type { SettleVerb } from '../../domain/mail/mail.ts';
import type { SyncSettle } from '../../domain/sync/sync.ts';
import { countRequeues } from '../limits/requeue-bytes.ts';
import type { HttpContext } from '../server/context.ts';
import type { DeviceRequest, Endpoint } from '../server/endpoint.ts';
import type { Reply } from '../server/reply.ts';
import { type JudgedRecords, judgeRecords } from '../sync/judged-records.ts';
import { noteRecords } from '../sync/noted-items.ts';
import { settleError, syncReply } from '../sync/sync-answer.ts';
import { invalid, knownMembers, parseSync, type SyncBody } from '../sync/sync-body.ts';

const membersOfSettlement = ['id', 'verb'];
const verbs: readonly unknown[] = ['ack', 'reject', 'requeue'] satisfies SettleVerb[];

/** `POST /v1/sync`: a whole wake in one request and one transaction (D29, D30). */
export const sync: Endpoint = {
  method: 'POST',
  path: '/v1/sync',
  takesBody: true,
  writes: true,
  async handle(request: DeviceRequest, context: HttpContext): Promise<Reply> {
    const { device, fleetId, cached, shard } = request;
    const { activity, config, refusals } = context;
    // The library's bytes are gone with the first await.
    const body = parseSync(Buffer.from(request.input.body));
    const records = await judgeRecords(body, fleetId, context);
    const settlements = body.settlements.map(judgeSettlement);
    const accepted = settlements.filter((one): one is SyncSettle => !(one instanceof ApiError));
    const requeued = accepted.filter(({ verb }) => verb === 'requeue').map(({ mailId }) => mailId);
    if (requeued.length > 0) await countRequeues(request, context, requeued);
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
        const { result, mailboxSize } = outcome.settled[index++] ?? { result: 'not_found', mailboxSize: 0 };
        return settleError(result, mailboxSize);
      }),
    };
    noteRecords(refusals, device, body.records, verdict.records);
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

/** Judges a settlement as its own route would. */
function judgeSettlement(item: unknown): SyncSettle | ApiError {
  try {
    const { id, verb } = knownMembers(item, 'A settlement', membersOfSettlement);
    if (!verbs.includes(verb)) throw invalid('verb must be ack, reject or requeue.');
    if (typeof id !== 'string') throw invalid('id must be a string.');
    const mailId = parseUuid(id);
    return mailId === undefined ? new ApiError('invalid_mail_id') : { mailId, verb: verb as SettleVerb };
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}
