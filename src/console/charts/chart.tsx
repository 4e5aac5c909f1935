import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type uPlot from 'uplot';
import { exactText } from '../server/clock.ts';
import type { Plotted, Pointed } from './plot.ts';

export interface ChartProps extends Plotted {
  label: string;
  /** Shown beside the label while nothing is pointed at; absent: the last value. */
  latest?: ComponentChildren;
}

/** Loaded with the first chart that is drawn: most of the console has none. */
const loading = (): Promise<typeof import('./plot.ts')> => import('./plot.ts');

/** What a chart says of the point that is pointed at; of a gap the time alone. */
function pointText(props: ChartProps, { index, seconds }: Pointed): [value: string, note: string] {
  const { times, values, range, format = String } = props;
  const [value, min, max] = [values[index], range?.[0][index], range?.[1][index]];
  const at = exactText((value == null ? seconds : (times[index] ?? seconds)) * 1_000).slice(0, 19);
  if (value == null) return ['–', at];
  const isOne = min == null || max == null || min === max;
  return [format(value), isOne ? at : `${format(min)} to ${format(max)}, ${at}`];
}

/** A line over time. The values are text too, for who does not see it. */
export function Chart(props: ChartProps) {
  const { label, times, values, range, span, unknownUntil, latest, format = String } = props;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const current = useRef(props);
  current.current = props;
  const [drawer, setDrawer] = useState<typeof import('./plot.ts')>();
  const [scheme, setScheme] = useState(0);
  const [pointed, setPointed] = useState<Pointed>();
  useEffect(() => {
    // If it cannot be loaded now, the next chart tries again; the last value is text.
    loading().then(
      (one) => setDrawer(() => one),
      () => undefined,
    );
    const media = matchMedia('(prefers-color-scheme: dark)');
    const onChange = (): void => setScheme((before) => before + 1);
    media.addEventListener('change', onChange);
    return () => media.removeEventListener('change', onChange);
  }, []);
  // Drawn anew only with another drawer, scheme or number of lines
  useEffect(() => {
    const element = place.current;
    if (drawer === undefined || element === null) return;
    plot.current = drawer.drawPlot(element, { now: () => current.current, onPoint: setPointed });
    const observer = new ResizeObserver(() =>
      plot.current?.setSize({ width: element.clientWidth, height: props.height ?? drawer.defaultHeight }),
    );
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [drawer, scheme, range === undefined]);
  // New points alone
  useEffect(
    () => drawer && plot.current?.setData(drawer.plottedColumns(current.current)),
    [times, values, span[0], span[1], unknownUntil],
  );
  const [value, note] = pointed === undefined ? [] : pointText(props, pointed);
  const last = values.findLast((one) => one !== null);
  return (
    <figure>
      <figcaption class="chart-caption">
        <h3 class="cut">{label}</h3>
        {value === undefined ? (
          (latest ?? (last !== undefined && last !== null && <span class="strong">{format(last)}</span>))
        ) : (
          <>
            <span class="strong">{value}</span> <span class="small soft">{note}</span>
          </>
        )}
      </figcaption>
      <div class="chart" ref={place} role="img" aria-label={`${label} over time`} />
    </figure>
  );
}
