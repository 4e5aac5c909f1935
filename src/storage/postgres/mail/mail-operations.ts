import type { DeviceKey } from '../../../core/identity.ts';
import { type IdempotencyLimits, keyRefusal, senderMark } from '../../../domain/idempotency.ts';
import type { Enqueue, EnqueueOutcome, Replay, ReplayOutcome } from '../../../domain/mail/mail.ts';
import { viewOf } from '../connection/bytes.ts';
import type { ExclusiveOperations, Operations } from '../writes/operation.ts';
import type { UnitOfWork } from '../writes/unit-of-work.ts';
import { letterKey } from './dead-letters.ts';
import { endedMailOf, noteEvent } from './mail-history.ts';
import {
  broadcastOperation,
  mailSweep,
  pruneBroadcastMarks,
  pruneDedupeKeys,
  type SweepLimits,
} from './mail-sweep.ts';
import {
  enqueue,
  type MailLimits,
  repeatedSettle,
  settle,
  wantEnqueue,
  wantSettle,
  wantWithdrawal,
  withdraw,
} from './mailbox.ts';

/** What devices send: a record, and the key that it is not to be stored twice by (D18), in one transaction. */
export function ingestOperations(limits: IdempotencyLimits): Operations {
  return {
    ingest: {
      need(work, { device, idempotency }) {
        if (idempotency === undefined) return;
        work.claims.want(device, idempotency.key, idempotency.digest, limits);
      },
      apply(work, { device, kind, schema, payload, idempotency }) {
        if (idempotency !== undefined) {
          const claim = work.claims.claim(device, idempotency.key, idempotency.digest, work.nowMs);
          if (claim !== 'stored') return claim;
        }
        work.append({ device, kind, schema, payload });
        return 'stored';
      },
    },
  };
}

/** The values of the config that mail depends on. */
export type MailOptions = MailLimits & SweepLimits & IdempotencyLimits;

const forgotten = { name: 'forgotten' };

/** Writes of mail, which share their transaction with others. */
export function mailOperations(options: MailOptions): Operations {
  return {
    enqueue: {
      need(work, given) {
        wantEnqueue(work, given);
        if (given.idempotency === undefined) return;
        work.keys.want(keyOf(given.device, given.idempotency.key));
        work.values.want(forgotten);
      },
      apply: (work, given) => enqueueOnce(work, given, options),
    },
    settle: {
      need: wantSettle,
      apply: (work, given) => settle(work, given, options),
    },
    withdrawMail: {
      need: (work, { device, mailId }) => wantWithdrawal(work, device, mailId),
      apply: (work, { device, mailId }) => withdraw(work, device, mailId, options),
    },
    replayMail: {
      need: (work, { device, mailId }) => wantLetter(work, device, mailId),
      apply: (work, given) => replay(work, given, options),
    },
    dropDeadLetter: {
      need: (work, { device, mailId }) => wantLetter(work, device, mailId),
      apply(work, { device, mailId }) {
        const key = letterKey(device, mailId);
        const isThere = work.letters.get(key) !== undefined;
        if (isThere) work.letters.remove(key);
        return isThere;
      },
    },
    broadcast: broadcastOperation(options),
  };
}

/** Writes of mail that have a transaction each. */
export function exclusiveMailOperations(options: MailOptions): ExclusiveOperations {
  return {
    pruneDedupeKeys: pruneDedupeKeys,
    pruneBroadcasts: pruneBroadcastMarks,
    sweep: mailSweep(options),
  };
}

function keyOf(device: DeviceKey, key: Uint8Array): { key: Buffer; scope: string } {
  return { key: viewOf(key), scope: device + senderMark };
}

/** D18 for senders: the key and the mail's id are committed with the mail. */
function enqueueOnce(work: UnitOfWork, given: Enqueue, options: MailOptions): EnqueueOutcome {
  const { device, idempotency } = given;
  if (idempotency === undefined) return enqueue(work, given, options);
  const key = keyOf(device, idempotency.key);
  const digest = viewOf(idempotency.digest);
  const known = work.keys.get(key);
  if (known !== undefined) {
    return known.digest.equals(digest)
      ? repeatedSettle(work, device, known.result)
      : { result: 'key_reused' };
  }
  const refusal = keyRefusal(key.key, work.nowMs, work.values.get(forgotten)?.number ?? 0, options);
  if (refusal !== undefined) return { result: refusal };
  const outcome = enqueue(work, given, options);
  if (outcome.result === 'queued') work.keys.put({ ...key, digest, result: viewOf(outcome.mailId) });
  return outcome;
}

/** Whoever takes a letter, holds its mailbox, so that it is replayed once. */
function wantLetter(work: UnitOfWork, device: DeviceKey, mailId: Uint8Array): void {
  work.mailboxes.want({ device });
  work.letters.want(letterKey(device, mailId));
}

function replay(work: UnitOfWork, given: Replay, options: MailOptions): ReplayOutcome {
  const { device, mailId, ttlSeconds, mailboxMailsMax } = given;
  const key = letterKey(device, mailId);
  const letter = work.letters.get(key);
  if (letter === undefined) return { result: 'mail_not_found' };
  const { name, payload, requeues_max } = letter;
  const mail: Enqueue = { device, name, payload, ttlSeconds, mailboxMailsMax };
  if (requeues_max !== null) mail.requeuesMax = requeues_max;
  const outcome = enqueue(work, mail, options);
  if (outcome.result !== 'queued') return outcome;
  work.letters.remove(key);
  noteEvent(work, endedMailOf(letter), 'replayed', outcome.mailId);
  return outcome;
}
