import { useMemo } from 'preact/hooks';
import { pathTo } from '../../../contract/routes/path.ts';
import type { ServerHourDocument } from '../../../contract/server.ts';
import { Chart } from '../../charts/chart.tsx';
import { Section } from '../../frame/frame.tsx';
import { Loaded } from '../../parts/banner.tsx';
import { clockText } from '../../server/clock.ts';
import { useDocument } from '../../server/resource.ts';
import { rateText } from './shards.tsx';

const everySeconds = 60;
const hourSeconds = 3_600;
/** A minute that has only begun says nothing yet. */
const secondsMin = 10;

const millisecondsText = (value: number): string => `${Number(value.toPrecision(3)).toLocaleString('en')} ms`;

/** How much this node had to do in the last hour, and how quick it was. */
export function ServerLastHour() {
  const hour = useDocument(pathTo('/top/hour', {}), everySeconds);
  return (
    <Section title="Last hour" note={<span class="read">by minute, at this node</span>}>
      <Loaded resource={hour}>{(document) => <HourCharts hour={document} />}</Loaded>
    </Section>
  );
}

function HourCharts({ hour }: { hour: ServerHourDocument }) {
  const { minutes, lines, fromSeconds, span } = useMemo(() => hourLines(hour), [hour]);
  if (minutes === 0) return <p class="empty">The first minute has begun.</p>;
  const unknownUntil = fromSeconds > span[0] + secondsMin ? fromSeconds : undefined;
  const shape = { times: lines.times, span, unknownUntil, isFromZero: true, isStepped: true };
  return (
    <div class="below stack">
      <Chart label="Requests" values={lines.requests} format={(value) => `${rateText(value)}/s`} {...shape} />
      <Chart label="p99" values={lines.p99} format={millisecondsText} {...shape} />
      {lines.failed.some((value) => value > 0) && (
        <Chart
          label="Answered with 5xx"
          values={lines.failed}
          format={(value) => `${rateText(value)}/s`}
          {...shape}
        />
      )}
      {unknownUntil !== undefined && (
        <p class="small soft">
          Shaded: before this node started, at {clockText(new Date(fromSeconds * 1_000).toISOString())}.
        </p>
      )}
    </div>
  );
}

/** The lines of an hour: each value belongs to the minute that ends at its time. */
function hourLines({ time, minutes: all }: ServerHourDocument) {
  const minutes = all.filter(({ seconds }, at) => at < all.length - 1 || seconds >= secondsMin);
  const [first] = all;
  const now = Date.parse(time) / 1_000;
  return {
    minutes: minutes.length,
    span: [now - hourSeconds, now] as const,
    fromSeconds: first === undefined ? now : Date.parse(first.ended_at) / 1_000 - first.seconds,
    lines: {
      times: minutes.map(({ ended_at }) => Date.parse(ended_at) / 1_000),
      requests: minutes.map(({ requests, seconds }) => requests / Math.max(1, seconds)),
      failed: minutes.map(({ failed, seconds }) => failed / Math.max(1, seconds)),
      p99: minutes.map(({ p99_seconds }) => (p99_seconds === null ? null : p99_seconds * 1_000)),
    },
  };
}
