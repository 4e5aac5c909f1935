import type { DeviceKey } from '../../../core/identity.ts';
import { type IdempotencyLimits, keyRefusal, senderMark } from '../../../domain/idempotency.ts';
import { replayedMail } from '../../../domain/mail/enqueue-rules.ts';
import type { Enqueue, EnqueueOutcome, Replay, ReplayOutcome } from '../../../domain/mail/mail.ts';
import { viewOf } from '../connection/bytes.ts';
import type { ExclusiveOperations, Operations } from '../writes/operation.ts';
import type { UnitOfWork } from '../writes/unit-of-work.ts';
import { letterKey } from './dead-letters.ts';
import { endedMailOf, noteEvent } from './mail-history.ts';
import {
  broadcastOperation,
  forgetBroadcast,
  mailSweep,
  pruneDedupeKeys,
  type SweepLimits,
} from './mail-sweep.ts';
import {
  enqueue,
  type MailLimits,
  preloadEnqueue,
  preloadSettle,
  preloadWithdrawal,
  repeatedEnqueue,
  settle,
  withdraw,
} from './mailbox.ts';

/** Configuration values that mail depends on. */
export type MailOptions = MailLimits & SweepLimits & IdempotencyLimits;

const forgotten = { name: 'forgotten' };

/** Writes of mail, batched in shared transactions. */
export function mailOperations(options: MailOptions): Operations {
  return {
    enqueue: {
      preload(work, params) {
        preloadEnqueue(work, params);
        if (params.idempotency === undefined) return;
        work.keys.preload(keyOf(params.device, params.idempotency.key));
        work.values.preload(forgotten);
      },
      apply: (work, params) => enqueueOnce(work, params, options),
    },
    settle: {
      preload: preloadSettle,
      apply: (work, params) => settle(work, params, options),
    },
    withdrawMail: {
      preload: (work, { device, mailId }) => preloadWithdrawal(work, device, mailId),
      apply: (work, { device, mailId }) => withdraw(work, device, mailId, options),
    },
    replayMail: {
      preload(work, { device, mailId }) {
        preloadLetter(work, device, mailId);
        work.mailBytes.preload(device);
      },
      apply: (work, params) => replay(work, params, options),
    },
    dropDeadLetter: {
      preload: (work, { device, mailId }) => preloadLetter(work, device, mailId),
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

/** Writes of mail, each in its own transaction. */
export function exclusiveMailOperations(options: MailOptions): ExclusiveOperations {
  return {
    pruneDedupeKeys: pruneDedupeKeys,
    forgetBroadcast,
    sweep: mailSweep(options),
  };
}

function keyOf(device: DeviceKey, key: Uint8Array): { key: Buffer; scope: string } {
  return { key: viewOf(key), scope: device + senderMark };
}

/** D18 for senders: the key and the mail id are committed with the mail. */
function enqueueOnce(work: UnitOfWork, params: Enqueue, options: MailOptions): EnqueueOutcome {
  const { device, idempotency } = params;
  if (idempotency === undefined) return enqueue(work, params, options);
  const key = keyOf(device, idempotency.key);
  const digest = viewOf(idempotency.digest);
  const known = work.keys.get(key);
  if (known !== undefined) {
    return known.digest.equals(digest)
      ? repeatedEnqueue(work, device, known.result)
      : { result: 'key_reused' };
  }
  const refusal = keyRefusal(key.key, work.nowMs, work.values.get(forgotten)?.number ?? 0, options);
  if (refusal !== undefined) return { result: refusal };
  const outcome = enqueue(work, params, options);
  if (outcome.result === 'queued') work.keys.put({ ...key, digest, result: viewOf(outcome.mailId) });
  return outcome;
}

/** Locks the mailbox of a letter, so that it is replayed once. */
function preloadLetter(work: UnitOfWork, device: DeviceKey, mailId: Uint8Array): void {
  work.mailboxes.preload({ device });
  work.letters.preload(letterKey(device, mailId));
}

function replay(work: UnitOfWork, params: Replay, options: MailOptions): ReplayOutcome {
  const { device, mailId } = params;
  const key = letterKey(device, mailId);
  const letter = work.letters.get(key);
  if (letter === undefined) return { result: 'mail_not_found' };
  const outcome = enqueue(work, replayedMail(params, letter), options);
  if (outcome.result !== 'queued') return outcome;
  work.letters.remove(key);
  noteEvent(work, endedMailOf(letter), 'replayed', outcome.mailId);
  return outcome;
}
