import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import type { DeviceDocument } from '../../../contract/device.ts';
import { below, pathTo } from '../../../contract/routes/path.ts';
import { Section } from '../../frame/frame.tsx';
import { Act } from '../../parts/act.tsx';
import { ErrorBanner, Loaded } from '../../parts/banner.tsx';
import { CopyButton } from '../../parts/copy-button.tsx';
import { DeviceLink } from '../../parts/device.tsx';
import { RecordRows, StreamNotice } from '../../parts/record-rows.tsx';
import { call } from '../../server/client.ts';
import { serverNow } from '../../server/clock.ts';
import { pathOfDevice } from '../../server/device-path.ts';
import { useFollowedRecords } from '../../server/followed-records.ts';
import { useDocument } from '../../server/resource.ts';
import { useSubmit } from '../../server/submit.ts';
import { NewDeviceDrawer } from '../devices/new-device.tsx';
import { sendTo } from '../send/send-to.ts';

/** For a fleet without devices, or with its first one: from a heartbeat to a mail that is acknowledged. */
export function FirstSteps({ fleetId, onMade }: { fleetId: string; onMade: () => void }) {
  const [isMaking, setMaking] = useState(false);
  const first = useDocument(pathTo('/fleets/{fleet_id}/devices', { fleet_id: fleetId }), 2, { limit: 1 });
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
          onClose={() => {
            setMaking(false);
            onMade();
          }}
        />
      )}
    </Section>
  );
}

/** Commands for a device's first requests, with its own ids; its secret only if it was just made. */
function commandsOf({ fleet_id, device_id }: DeviceDocument, secret: string) {
  const base = `https://${location.hostname}:8443`;
  const headers = [`X-Fleet-ID: ${fleet_id}`, `X-Device-ID: ${device_id}`, `X-Device-Secret: ${secret}`];
  const curl = `curl -sS --cacert data/tls/cert.pem ${headers.map((one) => `-H '${one}'`).join(' ')}`;
  return {
    heartbeat: `${curl} -X POST ${base}/v1/heartbeat`,
    datapoint: `${curl} -H 'Content-Type: application/json' -d '{"celsius":21.5}' ${base}/v1/datapoint/temperature`,
    fetch: `${curl} -i ${base}/v1/mailbox/next`,
    acknowledge: `${curl} -X PUT ${base}/v1/mailbox/ack/MAIL_ID`,
  };
}

function Steps({ fleetId, device }: { fleetId: string; device: DeviceDocument }) {
  const [secret, setSecret] = useState('FOS-…');
  const { error, submit } = useSubmit();
  const { device_id, last_seen, mailbox_size } = device;
  const from = useMemo(() => new Date(serverNow() - 86_400_000).toISOString(), []);
  const stream = useFollowedRecords(fleetId, device_id, { device: device_id, from, follow: true }, false);
  const hasData = stream.records.some(({ kind }) => kind === 'datapoint');
  const hasAnswer = stream.records.some(
    ({ kind, preview }) => kind === 'receipt' && preview.startsWith('acked'),
  );
  const commands = commandsOf(device, secret);
  const rotate = (): void => {
    const path = below(pathOfDevice(fleetId, device_id), '/rotate-secret', {});
    void submit(async () => setSecret((await call('POST', path, { body: {} })).device_secret));
  };
  return (
    <div class="stack">
      <p class="inline">
        <span>
          Paste these where the server runs, for <DeviceLink fleetId={fleetId} id={device_id} />. Its secret
          was shown once, when it was made.
        </span>
        <Act scope="provision" onClick={rotate} title="The old one ends at once">
          Make a new secret
        </Act>
      </p>
      {error && <ErrorBanner error={error} />}
      <ol class="steps">
        <Step title="It says that it is alive" isDone={last_seen !== null} commands={[commands.heartbeat]} />
        <Step title="It sends a datapoint" isDone={hasData} commands={[commands.datapoint]} />
        <Step
          title="It gets a mail, and acknowledges it"
          isDone={hasAnswer}
          commands={[commands.fetch, commands.acknowledge]}
        >
          {mailbox_size === 0 && !hasAnswer && (
            <span>
              <Act
                scope="mail"
                onClick={() => {
                  sendTo.value = { deviceId: device_id };
                }}
              >
                Send it a mail
              </Act>
            </span>
          )}
        </Step>
      </ol>
      <StreamNotice stream={stream} />
      <RecordRows fleetId={fleetId} records={stream.records.slice(0, 10)} />
    </div>
  );
}

interface StepProps {
  title: string;
  isDone: boolean;
  commands: readonly string[];
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
        {!isDone &&
          commands.map((command) => (
            <div class="paste" key={command}>
              <pre>{command}</pre>
              <CopyButton text={command} label="Copy the command" />
            </div>
          ))}
        {!isDone && children}
      </div>
    </li>
  );
}
