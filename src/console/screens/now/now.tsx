import type { FleetCountsDocument } from '../../../contract/fleet.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { Screen } from '../../frame/frame.tsx';
import { lazyScreen } from '../../frame/lazy-screen.tsx';
import { useKeys } from '../../page/keys.ts';
import { href } from '../../page/router.ts';
import { Act } from '../../parts/act.tsx';
import { Loaded } from '../../parts/banner.tsx';
import { Icon } from '../../parts/icon.tsx';
import { useDocument } from '../../server/resource.ts';
import { QueryBar } from '../devices/query-bar.tsx';
import { sendTo } from '../send/send-to.ts';
import { Attention } from './attention.tsx';
import { Pulse } from './pulse-charts.tsx';

const FirstSteps = lazyScreen(async () => (await import('../set-up.tsx')).FirstSteps);

/** With what needs attention and the pulse, a dozen requests a minute. */
const everySeconds = 15;

/** The first screen: find a device, see how many are well, and what is not. */
export function NowScreen({ fleetId }: { fleetId: string }) {
  const path = pathTo('/fleets/{fleet_id}/counts', { fleet_id: fleetId });
  const counts = useDocument(path, everySeconds);
  const isEmpty = counts.value?.devices === 0;
  const isNew = counts.value !== undefined && counts.value.devices <= 1;
  const send = (): void => {
    sendTo.value = { deviceId: '' };
  };
  useKeys({ s: send });
  return (
    <Screen
      title="Now"
      read={counts}
      tools={
        <Act scope="mail" kind="main" onClick={send}>
          <Icon name="send" />
          Send mail <kbd>s</kbd>
        </Act>
      }
      commands={[{ command: ['fleet', 'count', fleetId], request: { path } }]}
    >
      {isNew && <FirstSteps fleetId={fleetId} onChange={counts.refresh} />}
      {!isEmpty && <QueryBar fleetId={fleetId} text="" isLarge />}
      <Loaded resource={counts}>{(document) => <FleetFigures fleetId={fleetId} counts={document} />}</Loaded>
      <div class="columns">
        <div>
          <Attention fleetId={fleetId} />
        </div>
        <div>
          <Pulse fleetId={fleetId} />
        </div>
      </div>
    </Screen>
  );
}

/** The devices of a fleet by state, each in one of the three: a number is a link to its list. */
export function FleetFigures({ fleetId, counts }: { fleetId: string; counts: FleetCountsDocument }) {
  const { devices, disabled, connected, active } = counts;
  // Connected ones count as active too, whether they have called lately or not; the rest is offline.
  const seen = Math.max(active, connected);
  const offline = Math.max(devices - seen - disabled, 0);
  const figures = [
    ['active', 'Active', seen, 'state:active', 'Has called lately, or is connected.'],
    ['offline', 'Offline', offline, 'state:offline enabled:yes', 'Has not called lately, or never.'],
    ['disabled', 'Disabled', disabled, 'enabled:no', 'All its requests are refused.'],
  ] as const;
  return (
    <div class="figures">
      {figures.map(([state, name, count, query, meaning]) => (
        <div key={state}>
          <a href={href([fleetId, 'devices'], { q: query })} title={meaning}>
            <span class={`state is-${state} soft`}>{name}</span>
            <span class="figure">{count.toLocaleString('en')}</span>
          </a>
          {state === 'active' && connected > 0 && (
            <a
              class="small"
              href={href([fleetId, 'devices'], { q: 'state:connected' })}
              title="An event stream is open."
            >
              <span class="state is-connected soft">{connected.toLocaleString('en')} of them connected</span>
            </a>
          )}
        </div>
      ))}
      <div>
        <a href={href([fleetId, 'devices'])}>
          <span class="soft">All devices</span>
          <span class="figure">{devices.toLocaleString('en')}</span>
        </a>
      </div>
    </div>
  );
}
