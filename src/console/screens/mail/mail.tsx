import { useState } from 'preact/hooks';
import type { ReceiptDocument } from '../../../contract/mail.ts';
import { below, pathTo } from '../../../contract/routes/path.ts';
import { Screen, Section } from '../../frame/frame.tsx';
import { go, href } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Banner, ErrorBanner, Loaded } from '../../parts/banner.tsx';
import { CopyButton } from '../../parts/copy-button.tsx';
import { DeviceLink } from '../../parts/device.tsx';
import { Fact } from '../../parts/facts.tsx';
import { Payload } from '../../parts/payload.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { call } from '../../server/client.ts';
import { pathOfDevice, pathOfMail } from '../../server/device-path.ts';
import { useDocument, useResource } from '../../server/resource.ts';
import { useSubmit } from '../../server/submit.ts';
import { isSettled, MailLife, useReceipt } from './mail-life.tsx';

/** Ends that make no dead letter, which alone would have a payload. */
const endsForGood: ReadonlySet<string> = new Set(['acked', 'withdrawn', 'replaced']);

export interface MailProps {
  fleetId: string;
  deviceId: string;
  mailId: string;
}

/** One mail: its life so far, and its payload. */
export function MailScreen({ fleetId, deviceId, mailId }: MailProps) {
  const receipt = useReceipt(fleetId, deviceId, mailId);
  return (
    <Screen
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
      commands={[
        {
          command: ['mail', 'receipt', mailId, '--fleet', fleetId, '--device', deviceId],
          request: { path: `/fleets/${fleetId}/devices/${deviceId}/mail/${mailId}` },
        },
      ]}
    >
      <Loaded resource={receipt}>
        {(document) => (
          <div class="columns">
            <div>
              <Section title="Life">
                <div class="below">
                  <MailLife receipt={document} isExact />
                </div>
              </Section>
              <Section title="Payload">
                <div class="below">
                  <MailPayload fleetId={fleetId} receipt={document} />
                </div>
              </Section>
              {document.reply !== null && (
                <Section title="Reply">
                  <div class="below">
                    <Payload value={document.reply} />
                  </div>
                </Section>
              )}
            </div>
            <div>
              <Section title="Facts">
                <dl class="facts">
                  <Fact name="Device">
                    <DeviceName fleetId={fleetId} deviceId={deviceId} />
                    <DeviceLink fleetId={fleetId} id={deviceId} />
                  </Fact>
                  <Fact name="Id">
                    <span class="inline">
                      <code class="small">{document.mail_id}</code>
                      <CopyButton text={document.mail_id} label="Copy the id" />
                    </span>
                  </Fact>
                </dl>
              </Section>
            </div>
          </div>
        )}
      </Loaded>
    </Screen>
  );
}

/** The name of the device, where it has one. */
function DeviceName({ fleetId, deviceId }: { fleetId: string; deviceId: string }) {
  const { name = '' } = useDocument(pathOfDevice(fleetId, deviceId)).value ?? {};
  return name === '' ? null : (
    <div>
      <Untrusted text={name} lengthMax={80} />
    </div>
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
  const path = pathOfMail(fleetId, device_id, mail_id);
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
  const isDead = isSettled(receipt) && !endsForGood.has(state);
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

/** Fetches the payload of a mail; undefined: it is nowhere any more. */
async function findPayload(
  fleetId: string,
  { device_id, mail_id, state }: ReceiptDocument,
  signal: AbortSignal,
): Promise<{ payload: unknown } | undefined> {
  if (endsForGood.has(state)) return undefined;
  const path = below(pathOfMail(fleetId, device_id, mail_id), '/payload', {});
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
