import { advance } from '../../../domain/sync/device-queues.ts';
import type { Sync, SyncOutcome } from '../../../domain/sync/sync.ts';
import { type MailLimits, preloadSettle, settle } from '../mail/mailbox.ts';
import type { Operations } from '../writes/operation.ts';
import type { UnitOfWork } from '../writes/unit-of-work.ts';

const none = Buffer.alloc(0);

/** A whole wake of a device in one transaction (D29). */
export function syncOperations(limits: MailLimits): Operations {
  return {
    sync: {
      preload(work, { device, queue, settlements }) {
        for (const one of settlements) preloadSettle(work, { device, ...one });
        if (queue === undefined) return;
        // Its lock is of the queues, too.
        work.mailboxes.preload({ device });
        work.queues.preload({ device });
      },
      apply(work, sync) {
        const { device, records, settlements } = sync;
        const step = advanceQueue(work, sync);
        for (const record of records.slice(step?.known)) if (record) work.append({ device, ...record });
        const settled = settlements.map((one) => settle(work, { device, ...one }, limits));
        const outcome: SyncOutcome = { queue: step?.position, settled, mailbox: undefined };
        work.wantFront(device, sync.mail, outcome);
        return outcome;
      },
    },
  };
}

function advanceQueue(work: UnitOfWork, { device, queue, records }: Sync) {
  if (queue === undefined) return undefined;
  const step = advance(work.queues.get({ device })?.queues ?? none, queue, records.length);
  // A device that was deleted meanwhile keeps none.
  const isThere = work.mailboxes.get({ device }) !== undefined;
  if (step.queues !== undefined && isThere) work.queues.put({ device, queues: step.queues });
  return step;
}
