import { useState } from 'preact/hooks';
import type { ShownDeviceDocument } from '../../../contract/device.ts';
import { Screen } from '../../frame/frame.tsx';
import { useKeys } from '../../page/keys.ts';
import { Act } from '../../parts/act.tsx';
import { ErrorBanner, Loaded } from '../../parts/banner.tsx';
import { CopyButton } from '../../parts/copy-button.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { call } from '../../server/client.ts';
import { pathOfDevice } from '../../server/device-path.ts';
import { useDocument } from '../../server/resource.ts';
import { useSubmit } from '../../server/submit.ts';
import { sendTo } from '../send/send-to.ts';
import { DeviceProgram } from './device-program.tsx';
import { Diagnosis } from './diagnosis.tsx';
import { Facts } from './facts.tsx';
import { Mailbox } from './mailbox.tsx';
import { LastRefusals } from './refusals.tsx';
import { Rotate } from './rotate.tsx';
import { Timeline } from './timeline.tsx';

/** Seconds between two looks at what changes by itself. */
const everySeconds = 3;

export interface DeviceProps {
  fleetId: string;
  deviceId: string;
}

/** One device: how it is, why it is stuck, what waits for it, what it sent. */
export function DeviceScreen({ fleetId, deviceId }: DeviceProps) {
  const path = pathOfDevice(fleetId, deviceId);
  const device = useDocument(path, everySeconds);
  const { value } = device;
  return (
    <Screen
      title={
        value !== undefined && value.name !== '' ? (
          <span class="cut">
            <Untrusted text={value.name} lengthMax={80} />
          </span>
        ) : (
          'Device'
        )
      }
      beside={
        <span class="inline id">
          <code class="soft">{deviceId}</code>
          <CopyButton text={deviceId} label="Copy the id" />
        </span>
      }
      read={device}
      tools={value && <DeviceTools fleetId={fleetId} device={value} refresh={device.refresh} />}
      commands={[{ command: ['device', 'show', deviceId, '--fleet', fleetId], request: { path } }]}
    >
      <Loaded resource={device}>
        {(document) => (
          <>
            <Diagnosis fleetId={fleetId} deviceId={deviceId} everySeconds={everySeconds} />
            <div class="columns">
              <div>
                <Mailbox fleetId={fleetId} device={document} everySeconds={everySeconds} />
                <Timeline fleetId={fleetId} deviceId={deviceId} />
              </div>
              <div>
                <Facts fleetId={fleetId} device={document} />
                <LastRefusals fleetId={fleetId} deviceId={deviceId} />
                <DeviceProgram fleetId={fleetId} deviceId={deviceId} />
              </div>
            </div>
          </>
        )}
      </Loaded>
    </Screen>
  );
}

interface DeviceToolsProps {
  fleetId: string;
  device: ShownDeviceDocument;
  refresh: () => void;
}

/** The buttons for what can be done with a device. */
function DeviceTools({ fleetId, device: { device_id: deviceId, enabled }, refresh }: DeviceToolsProps) {
  const [isRotating, setRotating] = useState(false);
  const { error, isBusy, submit } = useSubmit();
  const send = (): void => {
    sendTo.value = { deviceId };
  };
  useKeys({ s: send, r: refresh });
  const path = pathOfDevice(fleetId, deviceId);
  const toggle = (): void =>
    void submit(() => call('PATCH', path, { body: { enabled: !enabled } })).then(refresh);
  return (
    <>
      {error && <ErrorBanner error={error} />}
      <Act
        scope="provision"
        kind={enabled ? 'bad' : 'main'}
        onClick={toggle}
        unless={isBusy ? 'On its way' : undefined}
      >
        {enabled ? 'Disable' : 'Enable'}
      </Act>
      <Act scope="provision" onClick={() => setRotating(true)}>
        New secret
      </Act>
      <Act scope="mail" kind="main" onClick={send}>
        <Icon name="send" />
        Send mail <kbd>s</kbd>
      </Act>
      {isRotating && <Rotate fleetId={fleetId} deviceId={deviceId} onClose={() => setRotating(false)} />}
    </>
  );
}
