import type { ForwarderHourDocument } from '../../../contract/forwarder.ts';
import { below, type Path } from '../../../contract/routes/path.ts';
import { Chart } from '../../charts/chart.tsx';
import { Section } from '../../frame/frame.tsx';
import { Loaded } from '../../parts/banner.tsx';
import { clockText } from '../../server/clock.ts';
import { useDocument } from '../../server/resource.ts';

const everySeconds = 60;
const hourSeconds = 3_600;
const minuteSeconds = 60;

const perMinute = (value: number): string => `${Math.round(value).toLocaleString('en')}/min`;

const total = (counts: readonly number[]): string =>
  counts.reduce((sum, count) => sum + count, 0).toLocaleString('en');

/** Charts of records delivered, in failed attempts and refused, in the last hour. */
export function ForwarderLastHour({ path }: { path: Path<'/fleets/{fleet_id}/forwarders/{name}'> }) {
  const hour = useDocument(below(path, '/hour', {}), everySeconds);
  return (
    <Section title="Last hour" note={<span class="read">records, by minute</span>}>
      <Loaded resource={hour}>{(document) => <HourCharts hour={document} />}</Loaded>
    </Section>
  );
}

function HourCharts({ hour }: { hour: ForwarderHourDocument }) {
  const lines = [
    ['Delivered', hour.delivered],
    ['In failed attempts', hour.failed],
    ['Refused', hour.refused],
  ] as const;
  const drawn = lines.filter(([, counts]) => counts.some((count) => count > 0));
  if (drawn.length === 0) return <p class="empty">It has sent nothing in the last hour.</p>;
  const now = Date.parse(hour.time) / 1_000;
  const from = Date.parse(hour.from) / 1_000;
  const span = [now - hourSeconds, now] as const;
  const unknownUntil = from - span[0] > minuteSeconds ? from : undefined;
  // Each value belongs to the minute that ends at its time.
  const times = hour.delivered.map((_, minute) => Math.min(now, from + (minute + 1) * minuteSeconds));
  return (
    <div class="below stack">
      {drawn.map(([label, values]) => (
        <Chart
          key={label}
          latest={<span class="strong">{total(values)} in the hour</span>}
          format={perMinute}
          isFromZero
          isStepped
          {...{ label, times, values, span, unknownUntil }}
        />
      ))}
      {unknownUntil !== undefined && (
        <p class="small soft">Shaded: before it ran here, from {clockText(hour.from)} on.</p>
      )}
    </div>
  );
}
