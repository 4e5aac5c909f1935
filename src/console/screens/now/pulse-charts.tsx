import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { pathTo } from '../../../contract/routes/path.ts';
import type { TopDocument } from '../../../contract/server.ts';
import { Chart } from '../../charts/chart.tsx';
import { Section } from '../../frame/frame.tsx';
import { href } from '../../page/router.ts';
import { Loaded } from '../../parts/banner.tsx';
import { serverNow } from '../../server/clock.ts';
import { quickAtFirst, useDocument } from '../../server/resource.ts';
import { type Beat, beatsAfter } from './pulse.ts';

/** Kept while the page is open, for whoever comes back to it. */
const beats = signal<readonly Beat[]>([]);
let before: TopDocument | undefined;

const perSecond = (value: number): string => `${value < 10 ? Number(value.toFixed(1)) : Math.round(value)}/s`;
const milliseconds = (value: number): string =>
  `${value < 10 ? Number(value.toFixed(1)) : Math.round(value)} ms`;

/** Draws what the server has done in the last minutes, and who asks most. */
export function Pulse({ fleetId }: { fleetId: string }) {
  const [every] = useState(() => quickAtFirst(4, 15));
  const top = useDocument(pathTo('/top', {}), every);
  const { value } = top;
  useEffect(() => {
    if (value === undefined || value.time === before?.time) return;
    beats.value = beatsAfter(beats.value, before, value);
    before = value;
  }, [value]);
  return (
    <Section title="Pulse" note={<span class="read">of the whole server, last 5 min</span>}>
      <Loaded resource={top}>
        {(document) => (
          <div class="below stack">
            <PulseCharts />
            <Talkers fleetId={fleetId} document={document} />
          </div>
        )}
      </Loaded>
    </Section>
  );
}

function PulseCharts() {
  const points = beats.value;
  const now = serverNow() / 1_000;
  const times = points.map(({ timeSeconds }) => timeSeconds);
  const lines = [
    ['Requests', points.map(({ requestsPerSecond }) => requestsPerSecond), perSecond],
    ['Latency p99', points.map(({ latencyMs }) => latencyMs), milliseconds],
    ['Commits', points.map(({ commitsPerSecond }) => commitsPerSecond), perSecond],
  ] as const;
  return (
    <>
      {lines.map(([label, values, format]) => (
        <Chart
          key={label}
          label={label}
          times={times}
          values={values}
          format={format}
          isFromZero
          isStepped
          height={84}
          span={[now - 300, now]}
        />
      ))}
    </>
  );
}

function Talkers({ fleetId, document }: { fleetId: string; document: TopDocument }) {
  const own = document.talkers.filter(({ fleet_id }) => fleet_id === fleetId).slice(0, 5);
  if (own.length === 0) return null;
  return (
    <div>
      <h3>Busiest devices</h3>
      <ul class="list">
        {own.map(({ device_id, requests_per_second }) => (
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
