import type { ReceiptDocument } from '../../../contract/mail.ts';
import { Moment } from '../../parts/moment.tsx';
import { fineSpanText, serverNow } from '../../server/clock.ts';
import { pathOfMail } from '../../server/device-path.ts';
import { type Resource, useDocument } from '../../server/resource.ts';
import { followedNow } from '../../server/ticking.ts';

const newSeconds = 1;
const oldSeconds = 10;
/** A mail is watched closely for so long after it was queued. */
const newMs = 60_000;

function everySeconds({ queued_at }: ReceiptDocument): number {
  return queued_at !== null && serverNow() - Date.parse(queued_at) < newMs ? newSeconds : oldSeconds;
}

/** How a mail ended, in words. */
export const ends: Readonly<Record<string, string>> = {
  acked: 'Acknowledged',
  rejected: 'Rejected',
  expired: 'Expired',
  withdrawn: 'Withdrawn',
  replaced: 'Replaced by a newer one',
  over_requeued: 'Requeued too often',
  mailbox_full: 'Found its mailbox full',
};

/** True if nothing more will happen to it. */
export function isSettled({ state }: ReceiptDocument): boolean {
  return state !== 'queued' && state !== 'delayed';
}

/** The receipt of a mail, read again while it lives. */
export function useReceipt(fleetId: string, deviceId: string, mailId: string): Resource<ReceiptDocument> {
  const path = pathOfMail(fleetId, deviceId, mailId);
  return useDocument(path, everySeconds, undefined, isSettled);
}

interface Step {
  name: string;
  time: string | null;
  kind: 'done' | 'good' | 'bad' | 'next';
}

function stepsOf(receipt: ReceiptDocument): Step[] {
  const { state, deliver_at, queued_at, fetch_count, first_fetched_at, requeue_count, settled_at } = receipt;
  const steps: Step[] = [];
  if (deliver_at !== null)
    steps.push({ name: 'Delayed until', time: deliver_at, kind: queued_at === null ? 'next' : 'done' });
  if (queued_at !== null) steps.push({ name: 'Queued', time: queued_at, kind: 'done' });
  if (fetch_count > 0) {
    const name = fetch_count === 1 ? 'Fetched' : `Fetched ${fetch_count} times, first`;
    steps.push({ name, time: first_fetched_at, kind: 'done' });
  } else if (state === 'queued') steps.push({ name: 'Not fetched yet', time: null, kind: 'next' });
  if (requeue_count > 0) steps.push({ name: `Requeued ${requeue_count} times`, time: null, kind: 'done' });
  if (isSettled(receipt)) {
    const kind = state === 'acked' ? 'good' : 'bad';
    steps.push({ name: ends[state] ?? state, time: settled_at, kind });
  } else if (state === 'queued') steps.push({ name: 'Not answered yet', time: null, kind: 'next' });
  return steps;
}

/** The life of a mail as a line, with the time of each step and what was between them; `isExact`: for quoting. */
export function MailLife({ receipt, isExact = false }: { receipt: ReceiptDocument; isExact?: boolean }) {
  followedNow();
  let beforeMs: number | undefined;
  const { expires_at } = receipt;
  return (
    <ol class="life" aria-label="Life of the mail">
      {stepsOf(receipt).map(({ name, time, kind }) => {
        const timeMs = time === null ? undefined : Date.parse(time);
        const between =
          beforeMs !== undefined && timeMs !== undefined ? `+${fineSpanText(timeMs - beforeMs)}` : undefined;
        beforeMs = timeMs ?? beforeMs;
        return (
          <li class={`is-${kind}`} key={name}>
            <span>
              {name} {between && <span class="hint">{between}</span>}
            </span>
            {time !== null && (
              <span class="soft small">
                <Moment time={time} isExact={isExact} />
              </span>
            )}
          </li>
        );
      })}
      {expires_at !== null && (
        <li class="is-next">
          <span>Expires</span>
          <span class="small">
            <Moment time={expires_at} isExact={isExact} />
          </span>
        </li>
      )}
    </ol>
  );
}
