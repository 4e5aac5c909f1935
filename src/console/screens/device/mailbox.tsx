import { useState } from 'preact/hooks';
import type { ShownDeviceDocument } from '../../../contract/device.ts';
import type { WaitingMailDocument } from '../../../contract/mail.ts';
import { below } from '../../../contract/routes/path.ts';
import { Section } from '../../frame/frame.tsx';
import { href } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Loaded } from '../../parts/banner.tsx';
import { Choice } from '../../parts/choice.tsx';
import { Moment } from '../../parts/moment.tsx';
import { visible } from '../../parts/untrusted.tsx';
import { pathOfDevice } from '../../server/device-path.ts';
import { writeExactly } from '../../server/exact-json.ts';
import { useDocument } from '../../server/resource.ts';

/** Mails that are drawn: the head of the mailbox is what matters. */
const shownMails = 20;
const payloadCharactersMax = 200;

export interface MailboxProps {
  fleetId: string;
  device: ShownDeviceDocument;
  everySeconds: number;
}

/** Lists the mail that waits for the device, its head first, or that is delayed, the next first. */
export function Mailbox({ fleetId, device, everySeconds }: MailboxProps) {
  const [state, setState] = useState<'queued' | 'delayed'>('queued');
  const [limit, setLimit] = useState(shownMails);
  const { device_id, mailbox_size, delayed_mails } = device;
  const path = below(pathOfDevice(fleetId, device_id), '/mail', {});
  const mails = useDocument(path, everySeconds, { state, limit });
  const options = [
    ['queued', `Queued ${mailbox_size.toLocaleString('en')}`],
    ['delayed', `Delayed ${delayed_mails.toLocaleString('en')}`],
  ] as const;
  return (
    <Section
      title="Mailbox"
      tools={<Choice label="Mails" value={state} options={options} onChange={setState} />}
    >
      <Loaded resource={mails}>
        {({ items, next }) => (
          <>
            {items.length === 0 && (
              <p class="empty">{state === 'queued' ? 'No mail waits.' : 'No mail is delayed.'}</p>
            )}
            <ol class="list">
              {items.map((mail) => (
                <WaitingMail key={mail.mail_id} fleetId={fleetId} deviceId={device_id} mail={mail} />
              ))}
            </ol>
            {next !== null && limit < 500 && (
              <Act kind="plain" onClick={() => setLimit(Math.min(limit * 5, 500))}>
                Show more
              </Act>
            )}
          </>
        )}
      </Loaded>
    </Section>
  );
}

function WaitingMail(props: { fleetId: string; deviceId: string; mail: WaitingMailDocument }) {
  const { fleetId, deviceId, mail } = props;
  const time = mail.deliver_at ?? mail.accepted_at;
  return (
    <li>
      <a class="row" href={href([fleetId, 'devices', deviceId, 'mail', mail.mail_id])}>
        <span class="state is-queued strong">
          <span class="cut mail-name">{mail.name}</span>
        </span>
        <code class="cut grow soft small">
          <bdi>{visible(writeExactly(mail.payload, payloadCharactersMax))}</bdi>
        </code>
        <span class="end small">
          {mail.fetch_count > 0 && (
            <span class={mail.fetch_count > 2 ? 'warn' : ''}>fetched {mail.fetch_count}×</span>
          )}
          {mail.requeue_count > 0 && <span class="warn">requeued {mail.requeue_count}×</span>}
          {time !== null && <Moment time={time} />}
        </span>
      </a>
    </li>
  );
}
