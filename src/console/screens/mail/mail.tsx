import { useState } from 'preact/hooks';
import type { ReceiptDocument } from '../../../contract/mail.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { Head, Section } from '../../frame/frame.tsx';
import { go, href } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Banner, ErrorBanner, Loaded } from '../../parts/banner.tsx';
import { Commands } from '../../parts/commands.tsx';
import { CopyButton } from '../../parts/copy-button.tsx';
import { DeviceLink } from '../../parts/device.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { call } from '../../server/client.ts';
import { useSubmit } from '../../server/submit.ts';
import { isSettled, MailLife, useReceipt } from './mail-life.tsx';
import { MailPayload } from './mail-payload.tsx';

export interface MailProps {
  fleetId: string;
  deviceId: string;
  mailId: string;
}

/** One mail: its life so far, and its payload. */
export function MailScreen({ fleetId, deviceId, mailId }: MailProps) {
  const receipt = useReceipt(fleetId, deviceId, mailId);
  return (
    <>
      <Head
        title={receipt.value ? <Untrusted text={receipt.value.name} lengthMax={80} /> : 'Mail'}
        beside={
          <span class="inline id">
            <DeviceLink fleetId={fleetId} id={deviceId} />
          </span>
        }
        read={receipt}
        tools={
          receipt.value && <MailTools fleetId={fleetId} receipt={receipt.value} onDone={receipt.refresh} />
        }
      />
      <div class="body">
        <Loaded resource={receipt}>
          {(document) => (
            <div class="columns">
              <div>
                <Section title="Payload">
                  <div class="below">
                    <MailPayload fleetId={fleetId} receipt={document} />
                  </div>
                </Section>
              </div>
              <div>
                <Section title="Life">
                  <div class="below">
                    <MailLife receipt={document} isExact />
                  </div>
                </Section>
                <Section title="Id">
                  <p class="inline">
                    <code class="small">{document.mail_id}</code>
                    <CopyButton text={document.mail_id} label="Copy the id" />
                  </p>
                </Section>
              </div>
            </div>
          )}
        </Loaded>
      </div>
      <Commands
        command={['mail', 'receipt', mailId, '--fleet', fleetId, '--device', deviceId]}
        request={{ path: `/fleets/${fleetId}/devices/${deviceId}/mail/${mailId}` }}
      />
    </>
  );
}

interface MailToolsProps {
  fleetId: string;
  receipt: ReceiptDocument;
  onDone: () => void;
}

function MailTools({ fleetId, receipt, onDone }: MailToolsProps) {
  const { device_id, mail_id, state } = receipt;
  const { error, isBusy, submit } = useSubmit();
  const [refused, setRefused] = useState<string | undefined>();
  const path = pathTo('/fleets/{fleet_id}/devices/{device_id}/mail/{mail_id}', {
    fleet_id: fleetId,
    device_id,
    mail_id,
  });
  const withdraw = (): void => {
    void submit(() => call('DELETE', path)).then(onDone);
  };
  const replay = (): void => {
    void submit(async () => {
      const body = { letters: [{ device_id, mail_id }] };
      const replayPath = pathTo('/fleets/{fleet_id}/dead-letters:replay', { fleet_id: fleetId });
      const answer = await call('POST', replayPath, { body });
      const [{ result = 'not_found', new_mail_id = undefined } = {}] = answer.items;
      if (new_mail_id !== undefined) go(href([fleetId, 'devices', device_id, 'mail', new_mail_id]));
      else setRefused(`It was not replayed: ${result.replaceAll('_', ' ')}.`);
    });
  };
  const isDead = isSettled(receipt) && state !== 'acked' && state !== 'withdrawn';
  return (
    <>
      {error && <ErrorBanner error={error} />}
      {refused !== undefined && <Banner kind="warn">{refused}</Banner>}
      {!isSettled(receipt) && (
        <Act scope="mail" kind="bad" onClick={withdraw} unless={isBusy ? 'On its way' : undefined}>
          Withdraw
        </Act>
      )}
      {isDead && (
        <Act scope="mail" kind="main" onClick={replay} unless={isBusy ? 'On its way' : undefined}>
          Replay
        </Act>
      )}
    </>
  );
}
