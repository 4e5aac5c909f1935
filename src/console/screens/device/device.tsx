import { useState } from 'preact/hooks';
import type { ShownDeviceDocument } from '../../../contract/device.ts';
import type { DiagnosisDocument } from '../../../contract/monitoring/diagnosis.ts';
import type { RefusalDocument } from '../../../contract/monitoring/refusal.ts';
import { below } from '../../../contract/routes/path.ts';
import { tellDone } from '../../forms/toast.tsx';
import { Screen } from '../../frame/frame.tsx';
import { lazyScreen } from '../../frame/lazy-screen.tsx';
import { Menu } from '../../frame/menu.tsx';
import { refusalWords } from '../../lists/refused-rows.tsx';
import { useKeys } from '../../page/keys.ts';
import { Act } from '../../parts/act.tsx';
import { ErrorBanner, Loaded } from '../../parts/banner.tsx';
import { CopyButton } from '../../parts/copy-button.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Untrusted } from '../../parts/untrusted.tsx';
import { call } from '../../server/client.ts';
import { pathOfDevice } from '../../server/device-path.ts';
import { readSoon, useDocument } from '../../server/resource.ts';
import { useSubmit } from '../../server/submit.ts';
import { NearestDevices } from '../devices/nearest-devices.tsx';
import { sendTo } from '../send/send-to.ts';
import { Diagnosis } from './diagnosis.tsx';
import { type EditedFact, Facts } from './facts.tsx';
import { Mailbox } from './mailbox.tsx';
import { LastRefusals } from './refusals.tsx';

/** Behind the mailbox, which is what one comes for: its charts are loaded when the first device is opened. */
const Timeline = lazyScreen(async () => (await import('./timeline.tsx')).Timeline);

const setUp = () => import('../set-up.tsx');
const DeviceProgram = lazyScreen(async () => (await setUp()).DeviceProgram);
const Rotate = lazyScreen(async () => (await setUp()).Rotate);
const ExportRecords = lazyScreen(async () => (await setUp()).ExportRecords);
const DeleteDevice = lazyScreen(async () => (await setUp()).DeleteDevice);

/** Seconds between two looks at what changes by itself; what becomes of its mail comes with the stream. */
const everySeconds = 40;

export interface DeviceProps {
  fleetId: string;
  deviceId: string;
}

/** One device: how it is, why it is stuck, what waits for it, what it sent. */
export function DeviceScreen({ fleetId, deviceId }: DeviceProps) {
  const path = pathOfDevice(fleetId, deviceId);
  const device = useDocument(path, everySeconds);
  const diagnosis = useDocument(below(path, '/diagnosis', {}), everySeconds);
  const refusals = useDocument(below(path, '/refusals', {}), everySeconds);
  const { value } = device;
  const [edited, setEdited] = useState<EditedFact | undefined>();
  return (
    <Screen
      title={
        value !== undefined && value.name !== '' ? (
          <span class="cut">
            <Untrusted text={value.name} lengthMax={80} />
          </span>
        ) : (
          <code>{deviceId}</code>
        )
      }
      name={value?.name}
      beside={
        <span class="inline id">
          {value !== undefined && value.name !== '' && <code class="soft">{deviceId}</code>}
          <CopyButton text={deviceId} label="Copy the id" />
        </span>
      }
      read={device}
      tools={
        value && <DeviceTools fleetId={fleetId} device={value} refresh={device.refresh} onEdit={setEdited} />
      }
      commands={[{ command: ['device', 'show', deviceId, '--fleet', fleetId], request: { path } }]}
    >
      <Loaded resource={device} otherwise={() => <NearestDevices fleetId={fleetId} deviceId={deviceId} />}>
        {(document) => (
          <>
            <Diagnosis fleetId={fleetId} deviceId={deviceId} diagnosis={diagnosis} />
            <div class="columns">
              <div>
                <Mailbox fleetId={fleetId} device={document} everySeconds={everySeconds} />
                <Timeline fleetId={fleetId} deviceId={deviceId} />
              </div>
              <div>
                <Facts
                  fleetId={fleetId}
                  device={document}
                  refused={refusedOf(diagnosis.value, refusals.value?.items ?? [])}
                  edited={edited}
                  onEdit={setEdited}
                  onChanged={device.refresh}
                />
                <LastRefusals refusals={refusals} />
                <DeviceProgram
                  fleetId={fleetId}
                  deviceId={deviceId}
                  hasCalled={document.last_seen !== null}
                />
              </div>
            </div>
          </>
        )}
      </Loaded>
    </Screen>
  );
}

/** Findings of devices that call in vain, or are refused some of what they send. */
const refusedKinds: Readonly<Partial<Record<DiagnosisDocument['kind'], string>>> = {
  locked_out: 'locked out',
  wrong_secret: refusalWords.wrong_secret,
  schema_mismatch: refusalWords.schema_mismatch,
  rate_limited: refusalWords.rate_limited,
  refused: refusalWords.other,
};

/** Why a device is refused now, if that is what explains most; of one whose secret is wrong, with its last attempt. */
function refusedOf(diagnosis: DiagnosisDocument | undefined, refusals: readonly RefusalDocument[]) {
  const why = diagnosis && refusedKinds[diagnosis.kind];
  if (why === undefined) return undefined;
  // With the right secret it is seen, and "last seen" says as much.
  return { why, last: refusals.find(({ detail }) => detail === 'device_secret_incorrect') };
}

interface DeviceToolsProps {
  fleetId: string;
  device: ShownDeviceDocument;
  refresh: () => void;
  onEdit: (fact: EditedFact) => void;
}

/** The buttons for what can be done with a device. */
function DeviceTools({ fleetId, device, refresh, onEdit }: DeviceToolsProps) {
  const { device_id: deviceId, enabled } = device;
  const [asked, setAsked] = useState<'secret' | 'export' | 'deletion' | undefined>();
  const { error, isBusy, submit } = useSubmit();
  const send = (): void => {
    sendTo.value = { deviceId };
  };
  useKeys({ s: send, r: refresh });
  const path = pathOfDevice(fleetId, deviceId);
  const set = async (isEnabled: boolean): Promise<void> => {
    await call('PATCH', path, { body: { enabled: isEnabled } });
    refresh();
    // The diagnosis is another one now.
    readSoon();
  };
  const toggle = (): void =>
    void submit(async () => {
      await set(!enabled);
      tellDone(`${enabled ? 'Disabled' : 'Enabled'} ${deviceId}.`, () => set(enabled));
    });
  const close = (): void => setAsked(undefined);
  return (
    <>
      {error && <ErrorBanner error={error} />}
      <Menu label="More to do with the device">
        <Act scope="provision" onClick={() => onEdit('name')}>
          Rename
        </Act>
        <Act scope="provision" onClick={() => onEdit('tags')}>
          Change tags
        </Act>
        <Act scope="provision" onClick={toggle} unless={isBusy ? 'On its way' : undefined}>
          {enabled ? 'Disable' : 'Enable'}
        </Act>
        <Act scope="provision" onClick={() => setAsked('secret')}>
          New secret
        </Act>
        <Act onClick={() => setAsked('export')}>Export its records</Act>
        <Act scope="provision" kind="bad" onClick={() => setAsked('deletion')}>
          Delete
        </Act>
      </Menu>
      <Act scope="mail" kind="main" onClick={send}>
        <Icon name="send" />
        Send mail <kbd>s</kbd>
      </Act>
      {asked === 'secret' && <Rotate fleetId={fleetId} deviceId={deviceId} onClose={close} />}
      {asked === 'export' && <ExportRecords fleetId={fleetId} device={deviceId} onClose={close} />}
      {asked === 'deletion' && <DeleteDevice fleetId={fleetId} device={device} onClose={close} />}
    </>
  );
}
