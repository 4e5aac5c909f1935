import { useEffect } from 'preact/hooks';
import { pathTo } from '../contract/routes/path.ts';
import { Frame } from './frame/frame.tsx';
import { lazyScreen } from './frame/lazy-screen.tsx';
import { isPaletteOpen, usePaletteKey } from './frame/palette-key.ts';
import { go, href, path } from './page/router.ts';
import { Banner, Loaded } from './parts/banner.tsx';
import { DeviceScreen } from './screens/device/device.tsx';
import { DevicesScreen } from './screens/devices/devices.tsx';
import { LiveScreen } from './screens/live/live.tsx';
import { MailScreen } from './screens/mail/mail.tsx';
import { NowScreen } from './screens/now/now.tsx';
import { SendDrawer } from './screens/send/send.tsx';
import { sendTo } from './screens/send/send-to.ts';
import { token } from './server/client.ts';
import { useDocument } from './server/resource.ts';
import { isStarting } from './session/session.ts';
import { Welcome } from './session/welcome.tsx';

// Loaded when one of them is first opened: the entry is what everybody loads.
const furtherScreens = () => import('./screens/operator-screens.tsx');
const OperatorScreens = lazyScreen(async () => (await furtherScreens()).OperatorScreens);
const Palette = lazyScreen(async () => (await furtherScreens()).Palette);
// Loaded lazily, because the editor comes with it: the entry is what everybody loads.
const DeveloperScreens = lazyScreen(
  async () => (await import('./screens/developer-screens.tsx')).DeveloperScreens,
);

/** The screen of an address. */
function ScreenAt({ parts }: { parts: readonly string[] }) {
  const [fleetId = '', screen, deviceId, what, mailId] = parts;
  if (screen === undefined) return <NowScreen fleetId={fleetId} />;
  if (screen === 'devices' && deviceId === undefined) return <DevicesScreen fleetId={fleetId} />;
  if (screen === 'devices' && deviceId !== undefined) {
    if (what === undefined) return <DeviceScreen key={deviceId} fleetId={fleetId} deviceId={deviceId} />;
    if (what === 'mail' && mailId !== undefined)
      return <MailScreen key={mailId} fleetId={fleetId} deviceId={deviceId} mailId={mailId} />;
  }
  if (screen === 'live') return <LiveScreen fleetId={fleetId} />;
  if (screen === 'actions' || screen === 'schemas') return <DeveloperScreens parts={parts} />;
  return <OperatorScreens parts={parts} />;
}

/** The whole page. */
export function Console() {
  if (isStarting.value) return <p class="welcome soft">Opening the console…</p>;
  if (token.value === undefined) return <Welcome />;
  return <Session />;
}

function Session() {
  const fleets = useDocument(pathTo('/fleets', {}), undefined, { limit: 1_000 });
  const parts = path.value;
  const [fleetId] = parts;
  usePaletteKey();
  const first = fleets.value?.items[0]?.fleet_id;
  useEffect(() => {
    if (fleetId === undefined && first !== undefined) go(href([first]), { replace: true });
  }, [fleetId, first]);
  if (fleetId === undefined) {
    return (
      <main class="welcome">
        <Loaded resource={fleets}>
          {({ items }) =>
            items.length === 0 && (
              <Banner>
                There is no fleet yet. Make one: <code>fleetpost fleet create --name Garden</code>
              </Banner>
            )
          }
        </Loaded>
      </main>
    );
  }
  return (
    <Frame fleetId={fleetId} fleets={fleets}>
      <ScreenAt parts={parts} />
      {sendTo.value !== undefined && <SendDrawer fleetId={fleetId} recipient={sendTo.value} />}
      {isPaletteOpen.value && <Palette fleetId={fleetId} />}
    </Frame>
  );
}
