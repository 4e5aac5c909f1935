import { useMemo } from 'preact/hooks';
import type { PulseDocument } from '../../../contract/monitoring/pulse.ts';
import { pathTo } from '../../../contract/routes/path.ts';
import { Chart } from '../../charts/chart.tsx';
import { Section } from '../../frame/frame.tsx';
import { href } from '../../page/router.ts';
import { Loaded } from '../../parts/banner.tsx';
import { clockText, serverNow } from '../../server/clock.ts';
import { useDocument } from '../../server/resource.ts';
import { pulseLines } from './pulse.ts';

const everySeconds = 20;
const hourSeconds = 3_600;
const minuteSeconds = 60;

const perSecond = (value: number): string =>
  `${value < 10 ? Number(value < 1 ? value.toPrecision(2) : value.toFixed(1)) : Math.round(value).toLocaleString('en')}/s`;
const whole = (value: number): string => Math.round(value).toLocaleString('en');

/** Draws what the devices of the fleet have done in the last hour, and who asks most. */
export function Pulse({ fleetId }: { fleetId: string }) {
  const pulse = useDocument(pathTo('/fleets/{fleet_id}/pulse', { fleet_id: fleetId }), everySeconds);
  return (
    <Section title="Pulse" note={<span class="read">of the last hour, at this node</span>}>
      <Loaded resource={pulse}>
        {(document) =>
          isQuiet(document) ? (
            <p class="empty">No device has called in the last hour.</p>
          ) : (
            <div class="below stack">
              <PulseCharts pulse={document} />
              <Busiest fleetId={fleetId} busiest={document.busiest} />
            </div>
          )
        }
      </Loaded>
    </Section>
  );
}

/** True while there is nothing to draw: no request, and no device that called before. */
function isQuiet(pulse: PulseDocument): boolean {
  const { requests, active } = pulseLines(pulse);
  return requests.every((value) => value === 0) && active.every((value) => !value);
}

function PulseCharts({ pulse }: { pulse: PulseDocument }) {
  const { times, requests, refused, active, kinds } = useMemo(() => pulseLines(pulse), [pulse]);
  const now = serverNow() / 1_000;
  const span = [now - hourSeconds, now] as const;
  // Before, this node did not run: without the shade it would look as if nobody had called.
  const from = Date.parse(pulse.from) / 1_000;
  const isYoung = from - span[0] > minuteSeconds;
  const unknownUntil = isYoung ? from : undefined;
  const shape = { times, span, unknownUntil, isFromZero: true, isStepped: true };
  return (
    <>
      <Chart label="Requests" values={requests} format={perSecond} {...shape} />
      {kinds.length > 0 && (
        <p class="small soft">
          {kinds.map((kind) => `${kind.name} ${perSecond(kind.perSecond)}`).join(', ')}
        </p>
      )}
      {refused.some((value) => value > 0) && (
        <Chart label="Refused" values={refused} format={perSecond} {...shape} />
      )}
      {active.some((value) => value !== null) && (
        <Chart label="Active devices" values={active} format={whole} {...shape} />
      )}
      {isYoung && <p class="small soft">Shaded: before this node started, at {clockText(pulse.from)}.</p>}
    </>
  );
}

function Busiest({ fleetId, busiest }: { fleetId: string; busiest: PulseDocument['busiest'] }) {
  if (busiest.length === 0) return null;
  return (
    <div>
      <h3>Busiest devices in the last minute</h3>
      <ul class="list">
        {busiest.map(({ device_id, requests_per_second }) => (
          <li key={device_id}>
            <a class="row" href={href([fleetId, 'devices', device_id])}>
              <code>{device_id}</code>
              <span class="end small">{perSecond(requests_per_second)}</span>
            </a>
          </li>
        ))}
      </ul>
    </div>
  );
}
