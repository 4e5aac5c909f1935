import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { DeviceDocument } from '../../../contract/device.ts';
import { below, pathTo } from '../../../contract/routes/path.ts';
import { Paste } from '../../forms/paste.tsx';
import { Section } from '../../frame/frame.tsx';
import { Act } from '../../parts/act.tsx';
import { Loaded } from '../../parts/banner.tsx';
import { DeviceLink } from '../../parts/device.tsx';
import { RecordRows, StreamNotice } from '../../parts/record-rows.tsx';
import { serverNow } from '../../server/clock.ts';
import { pathOfDevice } from '../../server/device-path.ts';
import { useFollowedRecords } from '../../server/followed-records.ts';
import { quickAtFirst, useDocument } from '../../server/resource.ts';
import { firstRequests } from '../device/first-requests.ts';
import { NeededSchema } from '../device/needed-schema.tsx';
import { UnknownSecret } from '../device/unknown-secret.tsx';
import { NewDeviceDrawer } from '../devices/new-device.tsx';
import { sendTo } from '../send/send-to.ts';

/** For a fleet without devices, or with its first one: from a heartbeat to a mail that is acknowledged. */
export function FirstSteps({ fleetId, onChange }: { fleetId: string; onChange: () => void }) {
  const [isMaking, setMaking] = useState(false);
  // Soon, as somebody pastes the first command; then rarely, and when the page is come back to.
  const every = useMemo(() => quickAtFirst(60, 15), [fleetId]);
  const path = pathTo('/fleets/{fleet_id}/devices', { fleet_id: fleetId });
  const first = useDocument(path, every, { limit: 1 }, hasCalled);
  useEffect(() => {
    addEventListener('focus', first.refresh);
    return () => removeEventListener('focus', first.refresh);
  }, [first.refresh]);
  // With its tick it counts as active.
  const isCalled = first.value !== undefined && hasCalled(first.value);
  useEffect(() => {
    if (isCalled) onChange();
  }, [isCalled]);
  return (
    <Section title="First steps">
      <div class="below">
        <Loaded resource={first}>
          {({ items: [device] }) =>
            device === undefined ? (
              <div class="stack">
                <p>This fleet has no device yet.</p>
                <div class="inline">
                  <Act scope="provision" kind="main" onClick={() => setMaking(true)}>
                    Make the first device
                  </Act>
                </div>
              </div>
            ) : (
              <Steps fleetId={fleetId} device={device} />
            )
          }
        </Loaded>
      </div>
      {isMaking && (
        <NewDeviceDrawer
          fleetId={fleetId}
          onMade={() => {
            first.refresh();
            onChange();
          }}
          onClose={() => setMaking(false)}
        />
      )}
    </Section>
  );
}

/** What a device does after its first call is in the records, which come by themselves. */
function hasCalled({ items: [device] }: { items: readonly DeviceDocument[] }): boolean {
  return device !== undefined && device.last_seen !== null;
}

function Steps({ fleetId, device }: { fleetId: string; device: DeviceDocument }) {
  const { device_id, last_seen } = device;
  const endpoint = useDocument(pathTo('/device-endpoint', {}));
  const from = useMemo(() => new Date(serverNow() - 86_400_000).toISOString(), []);
  const stream = useFollowedRecords(fleetId, device_id, { device: device_id, from, follow: true }, false);
  const hasData = stream.records.some(({ kind }) => kind === 'datapoint');
  const receipts = stream.records.filter(({ kind }) => kind === 'receipt').length;
  const hasAnswer = stream.records.some(
    ({ kind, preview }) => kind === 'receipt' && preview.startsWith('acked'),
  );
  return (
    <Loaded resource={endpoint}>
      {(at) => {
        const commands = firstRequests(device, at);
        return (
          <div class="stack">
            <p>
              Paste these {at.ca_file === null ? 'anywhere' : 'where the server runs'}, for{' '}
              <DeviceLink fleetId={fleetId} id={device_id} />.
              {at.ca_file !== null && ' Elsewhere, they need a copy of the certificate that they name.'}
            </p>
            <UnknownSecret fleetId={fleetId} deviceId={device_id} />
            <ol class="steps">
              <Step
                title="It says that it is alive"
                isDone={last_seen !== null}
                commands={[commands.heartbeat]}
              />
              <Step title="It sends a datapoint" isDone={hasData} commands={[commands.datapoint]}>
                <NeededSchema fleetId={fleetId} name="temperature" />
              </Step>
              <Step title="It gets a mail, and acknowledges it" isDone={hasAnswer} commands={[]}>
                <MailStep device={device} commands={commands} receipts={receipts} />
              </Step>
            </ol>
            <StreamNotice stream={stream} />
            <RecordRows fleetId={fleetId} records={stream.records.slice(0, 10)} />
          </div>
        );
      }}
    </Loaded>
  );
}

interface MailStepProps {
  device: DeviceDocument;
  commands: ReturnType<typeof firstRequests>;
  /** Grows with all that becomes of mail: the mailbox is read again then. */
  receipts: number;
}

/** Sends a mail, then shows how the device fetches and acknowledges it. */
function MailStep(props: MailStepProps) {
  const { fleet_id, device_id } = props.device;
  const path = below(pathOfDevice(fleet_id, device_id), '/mail', {});
  const mails = useDocument(path, undefined, { state: 'queued', limit: 1 });
  useEffect(() => mails.refresh(), [props.receipts]);
  const head = mails.value?.items[0];
  const { fetch, acknowledge } = props.commands;
  const send = (): void => {
    sendTo.value = { deviceId: device_id };
  };
  if (head === undefined) {
    return (
      <span>
        <Act scope="mail" onClick={send}>
          Send it a mail
        </Act>
      </span>
    );
  }
  return (
    <>
      {[fetch, acknowledge(head.mail_id)].map((command) => (
        <Paste key={command} text={command} label="Copy the command" />
      ))}
    </>
  );
}

interface StepProps {
  title: string;
  isDone: boolean;
  commands: readonly string[];
  /** What comes before them. */
  children?: ComponentChildren;
}

function Step({ title, isDone, commands, children }: StepProps) {
  return (
    <li class={isDone ? 'is-done' : undefined}>
      <div class="stack">
        <span class="strong">
          {title}
          {isDone && <span class="visually-hidden"> (done)</span>}
        </span>
        {!isDone && children}
        {!isDone &&
          commands.map((command) => <Paste key={command} text={command} label="Copy the command" />)}
      </div>
    </li>
  );
}
