import { useEffect, useRef, useState } from 'preact/hooks';
import type uPlot from 'uplot';
import { serverNow } from '../server/clock.ts';

export interface ChartProps {
  label: string;
  /** Seconds of each point. */
  times: readonly number[];
  values: readonly (number | null)[];
  /** A second line of lesser weight, and a third: the smallest and the largest of each point. */
  range?: readonly [readonly (number | null)[], readonly (number | null)[]];
  /** Time span of the chart, to the last point or to now. */
  windowSeconds: number;
  height?: number;
  /** Each value is a mean since the point before: drawn level over that time, not as a way from one to the next. */
  isStepped?: boolean;
  /** The axis begins at 0: what is drawn is a rate or a duration. */
  isFromZero?: boolean;
  format?: (value: number) => string;
}

/** Loaded with the first chart that is drawn: most of the console has none. */
const loading = (): Promise<typeof uPlot> => import('uplot').then(({ default: Plot }) => Plot);

function colourOf(element: Element, name: string): string {
  // A canvas does not resolve light-dark(): the colour of an element does.
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

const twoDaysSeconds = 172_800;

function nowSeconds(): number {
  return serverNow() / 1_000;
}

/** A time below the chart: of its day, or of longer windows the day. */
function timeLabel(seconds: number, windowSeconds: number): string {
  const date = new Date(seconds * 1_000);
  const two = (part: number): string => String(part).padStart(2, '0');
  if (windowSeconds > twoDaysSeconds) return `${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${two(date.getHours())}:${two(date.getMinutes())}`;
}

function optionsOf(shape: typeof uPlot, element: Element, props: ChartProps): uPlot.Options {
  const { height = 104, range, format, windowSeconds, isFromZero = false, isStepped = false } = props;
  const accent = colourOf(element, '--accent');
  const axis = {
    stroke: colourOf(element, '--ink-faint'),
    grid: { stroke: colourOf(element, '--line'), width: 1 },
    ticks: { show: false },
    font: `11px ${getComputedStyle(element).fontFamily}`,
  };
  const faint = { stroke: colourOf(element, '--line-strong'), width: 1, points: { show: false } };
  return {
    width: element.clientWidth,
    height,
    padding: [6, 6, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { size: 6 } },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 22,
        space: 70,
        values: (_plot, splits) => splits.map((one) => timeLabel(one, windowSeconds)),
      },
      {
        ...axis,
        size: 52,
        space: 28,
        ...(format && { values: (_plot, splits) => splits.map((one) => format(one)) }),
      },
    ],
    scales: {
      ...(isFromZero && { y: { range: { min: { hard: 0, pad: 0, soft: 0, mode: 1 }, max: { pad: 0.1 } } } }),
      x: { range: (_plot, _min, max) => [(max ?? nowSeconds()) - windowSeconds, max ?? nowSeconds()] },
    },
    series: [
      {},
      {
        stroke: accent,
        width: 1.5,
        points: { show: isSparse, size: 4, fill: accent },
        fill: colourOf(element, '--accent-soft'),
        ...(isStepped && shape.paths.stepped && { paths: shape.paths.stepped({ align: -1, alignGaps: -1 }) }),
      },
      ...(range ? [faint, faint] : []),
    ],
  };
}

/** A few points are seen as such: one alone makes no line. */
function isSparse({ data: [times] }: uPlot): boolean {
  return times.length < 20;
}

/** A line over time. The values are text too, for who does not see it. */
export function Chart(props: ChartProps) {
  const { label, times, values, range, format = String } = props;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const [shape, setShape] = useState<typeof uPlot>();
  const [scheme, setScheme] = useState(0);
  useEffect(() => {
    // If it cannot be loaded now, the next chart tries again; the last value is text.
    loading().then(
      (one) => setShape(() => one),
      () => undefined,
    );
    const media = matchMedia('(prefers-color-scheme: dark)');
    const onChange = (): void => setScheme((before) => before + 1);
    media.addEventListener('change', onChange);
    return () => media.removeEventListener('change', onChange);
  }, []);
  // Drawn anew only with another shape, scheme or number of lines
  useEffect(() => {
    const element = place.current;
    if (shape === undefined || element === null) return;
    plot.current = new shape(optionsOf(shape, element, props), dataOf(props), element);
    const observer = new ResizeObserver(() =>
      plot.current?.setSize({ width: element.clientWidth, height: props.height ?? 104 }),
    );
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [shape, scheme, range === undefined]);
  // New points alone
  useEffect(() => plot.current?.setData(dataOf(props)), [times, values]);
  const last = values.findLast((value) => value !== null);
  return (
    <figure>
      <figcaption class="inline">
        <h3>{label}</h3>
        {last !== undefined && last !== null && <span class="strong">{format(last)}</span>}
      </figcaption>
      <div class="chart" ref={place} role="img" aria-label={`${label} over time`} />
    </figure>
  );
}

function dataOf({ times, values, range }: ChartProps): uPlot.AlignedData {
  return [times, values, ...(range ?? [])] as unknown as uPlot.AlignedData;
}
