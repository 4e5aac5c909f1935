import { useEffect, useState } from 'preact/hooks';
import { pathTo } from '../contract/routes/path.ts';
import { Toast } from './forms/toast.tsx';
import { Frame } from './frame/frame.tsx';
import { lazyScreen } from './frame/lazy-screen.tsx';
import { isPaletteOpen, usePaletteKey } from './frame/palette-key.ts';
import { lastFleet, rememberFleet, takeWanted } from './page/remembered.ts';
import { go, href, path } from './page/router.ts';
import { Act } from './parts/act.tsx';
import { Banner, Loaded } from './parts/banner.tsx';
import { Untrusted } from './parts/untrusted.tsx';
import { DeviceScreen } from './screens/device/device.tsx';
import { DevicesScreen } from './screens/devices/devices.tsx';
import { NowScreen } from './screens/now/now.tsx';
import { sendTo } from './screens/send/send-to.ts';
import { changedFleets } from './server/changed-fleets.ts';
import { unreachableSince } from './server/client.ts';
import { useDocument } from './server/resource.ts';
import { access } from './server/session-state.ts';
import { isStarting, linkRefusal, self } from './session/session.ts';

// Loaded when one of them is first opened: the entry is what everybody loads.
const Welcome = lazyScreen(async () => (await import('./session/welcome.tsx')).Welcome);
const Ended = lazyScreen(async () => (await import('./session/welcome.tsx')).Ended);
const LiveScreen = lazyScreen(async () => (await import('./screens/live/live.tsx')).LiveScreen);
const MailScreen = lazyScreen(async () => (await import('./screens/mail/mail.tsx')).MailScreen);
const furtherScreens = () => import('./screens/operator-screens.tsx');
const OperatorScreens = lazyScreen(async () => (await furtherScreens()).OperatorScreens);
const Palette = lazyScreen(async () => (await furtherScreens()).Palette);
const NoFleet = lazyScreen(async () => (await import('./screens/set-up.tsx')).NoFleet);
const SendDrawer = lazyScreen(async () => (await furtherScreens()).SendDrawer);
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
  if (isStarting.value) {
    const isAway = unreachableSince.value !== undefined;
    return <p class="welcome soft">Opening the console…{isAway && ' The server does not answer yet.'}</p>;
  }
  if (access.value === 'out') return <Welcome />;
  const { name = '', scopes = [], fleet_id } = self.value ?? {};
  // Another login with the same rights goes on with the page as it is; what somebody else may see is read anew.
  return (
    <>
      <Session key={JSON.stringify([name, scopes, fleet_id])} />
      {access.value === 'ended' && <Ended />}
    </>
  );
}

/** Says why a link that was pasted did not log in, where one is logged in already. */
function LinkRefusal() {
  if (linkRefusal.value === undefined) return null;
  const forget = (): void => {
    linkRefusal.value = undefined;
  };
  return (
    <Banner kind="warn" tools={<Act onClick={forget}>Close</Act>}>
      The link did not log in; the session is the one from before.{' '}
      <Untrusted text={linkRefusal.value} lengthMax={500} />
    </Banner>
  );
}

function Session() {
  const fleets = useDocument(pathTo('/fleets', {}), undefined, { limit: 1_000 });
  const parts = path.value;
  const [fleetId] = parts;
  usePaletteKey();
  const changes = changedFleets.value;
  useEffect(() => {
    if (changes > 0) fleets.refresh();
  }, [changes]);
  const ids = fleets.value?.items.map(({ fleet_id }) => fleet_id);
  const isListed = fleetId !== undefined && ids?.includes(fleetId);
  const [wanted] = useState(takeWanted);
  useEffect(() => {
    if (isListed) rememberFleet(fleetId);
    if (fleetId !== undefined || ids === undefined) return;
    const fleet = ids.find((id) => id === lastFleet()) ?? ids[0];
    const target = wanted ?? (fleet && href([fleet]));
    if (target !== undefined) go(target, { replace: true });
  }, [fleetId, ids?.length]);
  if (fleetId === undefined) {
    return (
      <main class="welcome">
        <Loaded resource={fleets}>{({ items }) => items.length === 0 && <NoFleet />}</Loaded>
      </main>
    );
  }
  return (
    <Frame fleetId={fleetId} fleets={fleets}>
      <LinkRefusal />
      <ScreenAt parts={parts} />
      {sendTo.value !== undefined && <SendDrawer fleetId={fleetId} recipient={sendTo.value} />}
      <Toast />
      {isPaletteOpen.value && <Palette fleetId={fleetId} />}
    </Frame>
  );
}
