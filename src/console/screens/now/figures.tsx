import type { FleetCountsDocument } from '../../../contract/fleet.ts';
import { href } from '../../page/router.ts';

/** The devices of a fleet by state: each number a link to its list. */
export function Figures({ fleetId, counts }: { fleetId: string; counts: FleetCountsDocument }) {
  const { devices, disabled, connected, active } = counts;
  // Connected ones count as active too, whether they have called lately or not; the rest is offline.
  const seen = Math.max(active, connected);
  const offline = Math.max(devices - seen - disabled, 0);
  const figures = [
    ['connected', 'Connected', connected, 'state:connected', 'An event stream is open.'],
    ['active', 'Active', seen, 'state:active', 'Has called lately, or is connected.'],
    ['offline', 'Offline', offline, 'state:offline enabled:yes', 'Has not called lately, or never.'],
    ['disabled', 'Disabled', disabled, 'enabled:no', 'All its requests are refused.'],
  ] as const;
  return (
    <div class="figures">
      {figures.map(([state, name, count, query, meaning]) => (
        <a key={state} href={href([fleetId, 'devices'], { q: query })} title={meaning}>
          <span class={`state is-${state} soft`}>{name}</span>
          <span class="figure">{count.toLocaleString('en')}</span>
        </a>
      ))}
    </div>
  );
}
