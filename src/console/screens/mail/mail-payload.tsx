import type { ListDocument } from '../../../contract/document.ts';
import type { ReceiptDocument, WaitingMailDocument } from '../../../contract/mail.ts';
import { Loaded } from '../../parts/banner.tsx';
import { Payload } from '../../parts/payload.tsx';
import { call } from '../../server/client.ts';
import { useResource } from '../../server/resource.ts';
import { isSettled } from './mail-life.tsx';

/** Pages of a mailbox that are looked through for one mail. */
const pagesMax = 5;

/** Finds the payload of a mail: in the mailbox, or with the dead letters; undefined: nowhere any more. */
async function findPayload(
  fleetId: string,
  receipt: ReceiptDocument,
  signal: AbortSignal,
): Promise<{ payload: unknown } | undefined> {
  const { device_id, mail_id, state } = receipt;
  if (isSettled(receipt)) {
    if (state === 'acked' || state === 'withdrawn') return undefined;
    const path = `/fleets/${fleetId}/dead-letters/${device_id}/${mail_id}`;
    return { payload: await call('GET', path, { signal }) };
  }
  let after: string | undefined;
  for (let page = 0; page < pagesMax; page += 1) {
    const query = { state, after, limit: 100 };
    const path = `/fleets/${fleetId}/devices/${device_id}/mail`;
    const mails = await call<ListDocument<WaitingMailDocument>>('GET', path, { query, signal });
    const mail = mails.items.find((one) => one.mail_id === mail_id);
    if (mail !== undefined) return { payload: mail.payload };
    if (mails.next === null) return undefined;
    after = mails.next;
  }
  return undefined;
}

/** The payload of a mail while the server has it. */
export function MailPayload({ fleetId, receipt }: { fleetId: string; receipt: ReceiptDocument }) {
  const { mail_id, state } = receipt;
  const found = useResource(`${mail_id} ${state}`, async (signal) => ({
    answer: await findPayload(fleetId, receipt, signal),
  }));
  return (
    <Loaded resource={found}>
      {({ answer }) =>
        answer === undefined ? (
          <p class="empty">
            {state === 'acked' || state === 'withdrawn'
              ? 'The payload of a mail goes with its end; only dead letters keep theirs.'
              : 'It is not among the first mails of the mailbox.'}
          </p>
        ) : (
          <Payload value={answer.payload} />
        )
      }
    </Loaded>
  );
}
