import { useEffect, useMemo, useState } from 'preact/hooks';
import { pathTo } from '../contract/routes/path.ts';
import { Toast } from './forms/toast.tsx';
import { firstFleet } from './frame/first-fleet.ts';
import { Frame } from './frame/frame.tsx';
import { lazyScreen, Skeleton } from './frame/lazy-screen.tsx';
import { isPaletteOpen, usePaletteKey } from './frame/palette-key.ts';
import { forgetEntries } from './page/history-entry.ts';
import { areKeysShown, useKeys } from './page/keys.ts';
import { lastFleet, rememberFleet, takeWanted } from './page/remembered.ts';
import { go, href, path } from './page/router.ts';
import { Act } from './parts/act.tsx';
import { Banner, Loaded } from './parts/banner.tsx';
import { Untrusted } from './parts/untrusted.tsx';
import { DevicesScreen } from './screens/devices/devices.tsx';
import { NowScreen } from './screens/now/now.tsx';
import { sendTo } from './screens/send/send-to.ts';
import { changedFleets } from './server/changed-fleets.ts';
import { unreachableSince } from './server/client.ts';
import { useDocument } from './server/resource.ts';
import { isStarting, linkRefusal, self } from './session/session.ts';
import { access } from './session/session-state.ts';

// Loaded when one of them is first opened: the entry is what everybody loads.
const Welcome = lazyScreen(async () => (await import('./session/welcome.tsx')).Welcome);
const Ended = lazyScreen(async () => (await import('./session/welcome.tsx')).Ended);
const UnknownFleet = lazyScreen(async () => (await import('./frame/unknown-fleet.tsx')).UnknownFleet);
const deviceScreen = () => import('./screens/device/device.tsx');
const DeviceScreen = lazyScreen(async () => (await deviceScreen()).DeviceScreen, Skeleton);
const LiveScreen = lazyScreen(async () => (await import('./screens/live/live.tsx')).LiveScreen, Skeleton);
const MailScreen = lazyScreen(async () => (await import('./screens/mail/mail.tsx')).MailScreen, Skeleton);
const furtherScreens = () => import('./screens/operator-screens.tsx');
const OperatorScreens = lazyScreen(async () => (await furtherScreens()).OperatorScreens, Skeleton);
const Palette = lazyScreen(async () => (await furtherScreens()).Palette);
const NoFleet = lazyScreen(async () => (await import('./screens/set-up.tsx')).NoFleet);
const SendDrawer = lazyScreen(async () => (await furtherScreens()).SendDrawer);
const KeyList = lazyScreen(async () => (await furtherScreens()).KeyList);
// Loaded lazily, because the editor comes with it: the entry is what everybody loads.
const DeveloperScreens = lazyScreen(
  async () => (await import('./screens/developer-screens.tsx')).DeveloperScreens,
  Skeleton,
);

/** Time after which the first screen has been drawn. */
const prefetchMs = 1_500;

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
  // Answers of a session before this one may be of somebody who may see more.
  useState(forgetEntries);
  usePaletteKey();
  const changes = changedFleets.value;
  useEffect(() => {
    if (changes > 0) fleets.refresh();
  }, [changes]);
  useKeys({
    '?': () => {
      areKeysShown.value = true;
    },
  });
  const ids = fleets.value?.items.map(({ fleet_id }) => fleet_id);
  const isListed = fleetId === undefined ? undefined : ids?.includes(fleetId);
  // A fleet may have been made since the list was read: it is looked for once more before it is said to be missing.
  const arrivedMs = useMemo(() => Date.now(), [fleetId]);
  const isMissing = isListed === false && fleets.value?.next === null && (fleets.readAtMs ?? 0) >= arrivedMs;
  // Most look at a device next: it is fetched once there is time for it.
  useEffect(() => {
    const timer = setTimeout(() => void deviceScreen().catch(() => undefined), prefetchMs);
    return () => clearTimeout(timer);
  }, []);
  const [wanted] = useState(takeWanted);
  useEffect(() => {
    if (isListed && fleetId !== undefined) rememberFleet(fleetId);
    if (isListed === false) fleets.refresh();
    if (fleetId !== undefined || ids === undefined) return;
    const last = ids.find((id) => id === lastFleet());
    const target = wanted ?? (last && href([last]));
    if (target !== undefined) {
      go(target, { replace: true });
      return;
    }
    let isLeft = false;
    void firstFleet(ids).then((id) => {
      if (!isLeft && id !== undefined) go(href([id]), { replace: true });
    });
    return () => {
      isLeft = true;
    };
  }, [fleetId, isListed, ids === undefined, ids?.[0]]);
  if (fleetId === undefined) {
    return (
      <main class="welcome">
        <Loaded resource={fleets}>{({ items }) => items.length === 0 && <NoFleet />}</Loaded>
      </main>
    );
  }
  if (isMissing) return <UnknownFleet fleetId={fleetId} fleets={fleets.value?.items ?? []} />;
  return (
    <Frame fleetId={fleetId} fleets={fleets}>
      <LinkRefusal />
      <ScreenAt parts={parts} />
      {sendTo.value !== undefined && <SendDrawer fleetId={fleetId} recipient={sendTo.value} />}
      <Toast />
      {isPaletteOpen.value && <Palette fleetId={fleetId} />}
      {areKeysShown.value && <KeyList />}
    </Frame>
  );
}
