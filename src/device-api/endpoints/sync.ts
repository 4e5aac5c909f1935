import { ApiError } from '../../core/errors.ts';
import { formatUuid } from '../../core/uuid.ts';
import type { Mail, MailboxFront, MailFront } from '../../domain/mail/mail.ts';
import { mayBeReplaced } from '../../domain/mail/replaceable-mails.ts';
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
import { keepFetch, placeOf } from './kept-fetch.ts';
import { settleErrors } from './settle.ts';

/** Of a settlement whose mail is damaged. */
const damaged = new ApiError('internal_error');

/** `POST /v1/sync`: a whole wake in one request and one transaction (D29, D30, D31). */
export const sync: Endpoint = {
  method: 'POST',
  path: '/v1/sync',
  takesBody: true,
  writes: true,
  async handle(request: DeviceRequest, context: HttpContext): Promise<Reply> {
    const { device, fleetId, cached, shard } = request;
    const { activity, config, fleets, log, refusals } = context;
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
    const mailbox = outcome.mailbox && (await fetchedFront(request, context, outcome.mailbox, mail));
    let index = 0;
    const verdict = {
      records: errorsOf(records, body, outcome.queue?.storedTo ?? 0),
      settlements: settlements.map((one) => {
        if (one instanceof ApiError) return one;
        const settled = outcome.settled[index++];
        return settled === undefined ? damaged : settleErrors[settled.result];
      }),
    };
    // The request itself is answered: whoever runs the server would not hear of it.
    if (mailbox === undefined || outcome.settled.includes(undefined))
      log.error({ device }, 'mail of a sync cannot be read or settled; the rest is done');
    noteRecords(refusals, device, body.records, verdict.records);
    noteSettlements(refusals, device, body.settlements, verdict.settlements);
    return syncReply(verdict, { ...outcome, mailbox }, config.strictStatuses);
  },
};

/**
 * Counts a fetch of each mail (D13). Undefined if those that may be replaced are not stored as fetched: what was written is
 * written, and they come with the next sync.
 */
async function fetchedFront(
  request: DeviceRequest,
  context: HttpContext,
  first: MailboxFront,
  wanted: MailFront,
): Promise<MailboxFront | undefined> {
  const { cached, device, shard } = request;
  const count = (mails: readonly Mail[], stored?: ReadonlySet<string>): void => {
    for (const { id } of mails) {
      const text = formatUuid(id);
      if (!stored?.has(placeOf(text))) context.activity.fetched(cached, text, id);
    }
  };
  if (!first.mails.some(mayBeReplaced)) {
    count(first.mails);
    return first;
  }
  try {
    const readAgain = () => shard.mail.front(device, wanted);
    const { read, stored } = await keepFetch(request, context, first, ({ mails }) => mails, readAgain);
    count(read.mails, stored);
    return read;
  } catch {
    return undefined;
  }
}

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
