import { broadcastOutcome } from '../../../domain/mail/broadcast.ts';
import { sweepMailsMax, sweepRecordsMax } from '../../../domain/write.ts';
import { viewOf } from '../connection/bytes.ts';
import type { Session, Transaction } from '../connection/database.ts';
import { clockMs } from '../connection/database-time.ts';
import { retireSecrets } from '../devices/device-operations.ts';
import type { BroadcastMarkRow, DedupeRow, ReceiptRow } from '../schema/tables.ts';
import type { ExclusiveOperation, Operation } from '../writes/operation.ts';
import type { UnitOfWork } from '../writes/unit-of-work.ts';
import type { LetterKey } from './dead-letters.ts';
import { deliver, enqueue, expire, type MailKey, type MailLimits, preloadEnqueue } from './mailbox.ts';

/** Queues a broadcast mail for some dozens of devices, for each that has no mark of it yet. */
export function broadcastOperation(limits: MailLimits): Operation<'broadcast'> {
  return {
    preload(work, { broadcast, devices, mail }) {
      for (const device of devices) {
        work.marks.preload({ broadcast: viewOf(broadcast), device });
        preloadEnqueue(work, { ...mail, device });
      }
    },
    apply(work, params) {
      return broadcastOutcome(params, (device) => {
        const mark = { broadcast: viewOf(params.broadcast), device };
        if (work.marks.get(mark) !== undefined) return 'queued';
        const outcome = enqueue(work, { ...params.mail, device }, limits);
        if (outcome.result === 'queued') work.marks.put({ ...mark, mail_id: viewOf(outcome.mailId) });
        return outcome.result;
      });
    },
  };
}

/** Here and below, rows that another node is removing are skipped. */
const oldestDedupeKeys = `
  SELECT once, device FROM sent WHERE $1::bytea IS NULL OR once < $1
  ORDER BY once, device LIMIT ${sweepRecordsMax} FOR UPDATE SKIP LOCKED`;
const marksOf = `
  SELECT broadcast, device FROM broadcast_mark WHERE broadcast = $1
  ORDER BY device LIMIT ${sweepRecordsMax} FOR UPDATE SKIP LOCKED`;

/** Removes the oldest dedupe keys, only those before a UUIDv7 if given, and returns how many. */
export async function pruneDedupeKeys(
  work: UnitOfWork,
  transaction: Transaction,
  before: Uint8Array | undefined,
): Promise<number> {
  const values = [before === undefined ? null : viewOf(before)];
  const rows = await transaction.query<Pick<DedupeRow, 'once' | 'device'>>(oldestDedupeKeys, values);
  for (const row of rows) work.dedupe.remove(row);
  return rows.length;
}

/** Removes marks of a broadcast, and returns how many. */
export async function forgetBroadcast(
  work: UnitOfWork,
  transaction: Transaction,
  broadcast: Uint8Array,
): Promise<number> {
  const rows = await transaction.query<Pick<BroadcastMarkRow, 'broadcast' | 'device'>>(marksOf, [
    viewOf(broadcast),
  ]);
  for (const row of rows) work.marks.remove(row);
  return rows.length;
}

/** Retention of receipts and dead letters. */
export interface SweepLimits {
  receiptRetentionSeconds: number;
  deadLetterRetentionSeconds: number;
}

/** Limits are literals: with a parameter, the planner reads whole tables. */
const nowMs = `(SELECT ${clockMs})`;
const expiredMails = `
  SELECT device, mail_id AS id FROM mail WHERE expires_at_ms < ${nowMs}
  ORDER BY expires_at_ms, device, mail_id LIMIT ${sweepMailsMax}`;
const dueMails = `
  SELECT device, mail_id AS id FROM delayed_mail WHERE deliver_at_ms < ${nowMs}
  ORDER BY deliver_at_ms, device, mail_id LIMIT ${sweepMailsMax}`;
/** Rows that another node is removing are skipped. */
const oldReceipts = `
  SELECT device, mail_id AS "mailId" FROM receipt WHERE settled_at_ms < $1
  ORDER BY settled_at_ms LIMIT ${sweepRecordsMax} FOR UPDATE SKIP LOCKED`;
const oldLetters = `
  SELECT fleet_id AS "fleetId", mail_id AS "mailId", device FROM dead_letter WHERE died_at_ms < $1
  ORDER BY died_at_ms LIMIT ${sweepRecordsMax}`;
/** Next letters in order, and whether each one's device still exists: looked up one by one. */
const nextLetters = `
  SELECT l.fleet_id AS "fleetId", l.mail_id AS "mailId", l.device,
    (SELECT b.device FROM mailbox b WHERE b.device = l.device) IS NULL AS is_orphan
  FROM (
    SELECT t.fleet_id, t.mail_id, t.device FROM dead_letter t
    WHERE (t.fleet_id, t.mail_id, t.device) > ($1, $2, $3)
    ORDER BY t.fleet_id, t.mail_id, t.device LIMIT ${sweepRecordsMax}
  ) AS l
  ORDER BY l.fleet_id, l.mail_id, l.device`;

/** One round of the sweeper, including old secrets; several nodes may run it at once. */
export function mailSweep(limits: MailLimits & SweepLimits): ExclusiveOperation<'sweep'> {
  const orphans = new OrphanWalk();
  return async (work, transaction, what) => {
    if (what === 'old') return sweepOld(work, transaction, limits, orphans);
    const mails = await sweepDue(work, transaction, limits, what === 'due');
    const secrets = await retireSecrets(work, transaction, sweepRecordsMax);
    return mails === sweepMailsMax || secrets === sweepRecordsMax;
  };
}

/**
 * Expires mail, then delivers delayed mail into the room that leaves. Finds what is due first, and checks it again
 * behind the mailbox locks: another node may have been faster. Returns the larger of both counts of due mail.
 */
async function sweepDue(
  work: UnitOfWork,
  transaction: Transaction,
  limits: MailLimits,
  delivers: boolean,
): Promise<number> {
  const [expired, due] = await Promise.all([
    transaction.query<MailKey>(expiredMails),
    delivers ? transaction.query<MailKey>(dueMails) : [],
  ]);
  for (const { device, id } of expired) work.mailQueue.preload(device, id);
  for (const { device, id } of [...expired, ...due]) work.replaceable.preload(device, id);
  for (const { device, id } of due) {
    work.mailboxes.preload({ device });
    work.delayed.preload({ device, id });
  }
  await work.load(transaction);
  for (const mail of expired) expire(work, mail, limits);
  for (const mail of due) deliver(work, mail, limits);
  return Math.max(expired.length, due.length);
}

async function sweepOld(
  work: UnitOfWork,
  transaction: Transaction,
  limits: SweepLimits,
  orphans: OrphanWalk,
): Promise<boolean> {
  await work.load(transaction);
  const receiptsMs = work.nowMs - limits.receiptRetentionSeconds * 1_000;
  const lettersMs = work.nowMs - limits.deadLetterRetentionSeconds * 1_000;
  const [receipts, letters, walk] = await Promise.all([
    transaction.query<Pick<ReceiptRow, 'device' | 'mailId'>>(oldReceipts, [receiptsMs]),
    transaction.query<LetterKey>(oldLetters, [lettersMs]),
    orphans.step(transaction),
  ]);
  for (const receipt of receipts) work.receipts.remove(receipt);
  for (const letter of [...letters, ...walk.orphans]) work.letters.remove(letter);
  return receipts.length === sweepRecordsMax || letters.length === sweepRecordsMax || walk.goesOn;
}

/** Letters scanned without a pause, however few of them are orphans. */
const restAfterLetters = 100_000;
const front: LetterKey = { fleetId: '', mailId: Buffer.alloc(0), device: '' as LetterKey['device'] };

/**
 * Scans for letters of deleted devices, from front to end and again. The position is kept in memory: each node scans
 * for itself.
 */
class OrphanWalk {
  #last = front;
  #sinceRest = 0;

  async step(session: Session): Promise<{ orphans: LetterKey[]; goesOn: boolean }> {
    const { fleetId, mailId, device } = this.#last;
    const rows = await session.query<LetterKey & { is_orphan: boolean }>(nextLetters, [
      fleetId,
      mailId,
      device,
    ]);
    const isAtEnd = rows.length < sweepRecordsMax;
    this.#last = isAtEnd ? front : (rows.at(-1) ?? front);
    this.#sinceRest += rows.length;
    const goesOn = !isAtEnd && this.#sinceRest < restAfterLetters;
    if (!goesOn) this.#sinceRest = 0;
    return { orphans: rows.filter(({ is_orphan }) => is_orphan), goesOn };
  }
}
