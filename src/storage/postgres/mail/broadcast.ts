import type { BroadcastOutcome } from '../../../domain/mail/broadcast.ts';
import { viewOf } from '../connection/bytes.ts';
import type { Operation } from '../writes/operation.ts';
import { enqueue, type MailLimits } from './mailbox.ts';

/** Mail for some dozens of devices, for each that has not had it. */
export function broadcastOperation(limits: MailLimits): Operation<'broadcast'> {
  return {
    need(work, { broadcast, devices }) {
      for (const device of devices) {
        work.marks.want({ broadcast: viewOf(broadcast), device });
        work.mailboxes.want({ device });
      }
    },
    apply(work, { broadcast, devices, mail }) {
      const outcome: BroadcastOutcome = { queued: 0, refused: [] };
      for (const device of devices) {
        const mark = { broadcast: viewOf(broadcast), device };
        const isKnown = work.marks.get(mark) !== undefined;
        const result = isKnown ? 'queued' : enqueue(work, { ...mail, device }, limits).result;
        if (!isKnown && result === 'queued') work.marks.put(mark);
        if (result === 'queued') outcome.queued += 1;
        else outcome.refused.push({ device, reason: result });
      }
      return outcome;
    },
  };
}
