import { useEffect } from 'preact/hooks';
import type { BroadcastDocument } from '../../../contract/broadcast.ts';
import type { SentMailDocument } from '../../../contract/mail.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { href } from '../../page/router.ts';
import { Loaded } from '../../parts/banner.tsx';
import { DeviceLink } from '../../parts/device.tsx';
import { pluralText } from '../../parts/plural-text.ts';
import { isBroadcastEnded, useBroadcast } from '../../server/followed-broadcast.ts';
import { useOutcomes } from '../broadcasts/outcomes.tsx';
import { OutcomeBar } from '../broadcasts/progress.tsx';
import { RefusedDevices } from '../broadcasts/refusals.tsx';
import { MailLife, useReceipt } from '../mail/mail-life.tsx';
import { startedBroadcasts } from './send-to.ts';

export interface MailSentProps {
  fleetId: string;
  deviceId: string;
  mail: SentMailDocument;
}

/** Follows a mail that was just sent. */
export function MailSent({ fleetId, deviceId, mail }: MailSentProps) {
  const { mail_id, mailbox_size } = mail;
  const receipt = useReceipt(fleetId, deviceId, mail_id);
  const isWaiting = receipt.value === undefined || receipt.value.state === 'queued';
  return (
    <>
      <p>
        To <DeviceLink fleetId={fleetId} id={deviceId} />
        {isWaiting && mailbox_size > 1 && `, behind ${pluralText(mailbox_size - 1, 'mail')} of its mailbox`}.{' '}
        <a class="link" href={href([fleetId, 'devices', deviceId, 'mail', mail_id])}>
          Open this mail
        </a>
      </p>
      <Loaded resource={receipt}>{(document) => <MailLife receipt={document} />}</Loaded>
    </>
  );
}

/** How far a broadcast is that was just started. */
export function BroadcastSent({ fleetId, broadcast }: { fleetId: string; broadcast: BroadcastDocument }) {
  const path = pathTo('/fleets/{fleet_id}/broadcasts/{broadcast_id}', {
    fleet_id: fleetId,
    broadcast_id: broadcast.broadcast_id,
  });
  const current = useBroadcast(path).value ?? broadcast;
  const { state, devices, queued, refused } = current;
  const outcomes = useOutcomes({ path, broadcast: current });
  useEffect(() => {
    startedBroadcasts.value += 1;
  }, [path]);
  return (
    <>
      <progress
        aria-label="Broadcast"
        {...(devices === null
          ? {}
          : { max: devices || 1, value: queued + refused || (devices === 0 ? 1 : 0) })}
      />
      <p role="status">
        {state}: {queued.toLocaleString('en')} queued
        {devices !== null && ` of ${devices.toLocaleString('en')}`}
        {refused > 0 && `, ${refused.toLocaleString('en')} not queued`}.{' '}
        <a class="link" href={href([fleetId, 'broadcasts', broadcast.broadcast_id])}>
          See what becomes of it
        </a>
      </p>
      {outcomes.value !== undefined && <OutcomeBar broadcast={current} outcomes={outcomes.value} />}
      {isBroadcastEnded(current) && refused > 0 && (
        <RefusedDevices fleetId={fleetId} path={path} broadcast={current} />
      )}
    </>
  );
}
