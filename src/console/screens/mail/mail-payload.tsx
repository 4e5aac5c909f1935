import type { ReceiptDocument } from '../../../contract/mail.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { Loaded } from '../../parts/banner.tsx';
import { Payload } from '../../parts/payload.tsx';
import { call } from '../../server/client.ts';
import { useResource } from '../../server/resource.ts';

/** Fetches the payload of a mail; undefined: it is nowhere any more. */
async function findPayload(
  fleetId: string,
  { device_id, mail_id, state }: ReceiptDocument,
  signal: AbortSignal,
): Promise<{ payload: unknown } | undefined> {
  if (state === 'acked' || state === 'withdrawn') return undefined;
  const path = pathTo('/fleets/{fleet_id}/devices/{device_id}/mail/{mail_id}/payload', {
    fleet_id: fleetId,
    device_id,
    mail_id,
  });
  return { payload: await call('GET', path, { signal }) };
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
          <p class="empty">The payload of a mail goes with its end; only dead letters keep theirs.</p>
        ) : (
          <Payload value={answer.payload} />
        )
      }
    </Loaded>
  );
}
