import uPlot from 'uplot';
import { exactText } from '../server/clock.ts';

/** What a chart is drawn of. */
export interface Plotted {
  /** Seconds of each point. */
  times: readonly number[];
  /** Null where there is a gap. */
  values: readonly (number | null)[];
  /** A second line of lesser weight, and a third: the smallest and the largest of each point. */
  range?: readonly [readonly (number | null)[], readonly (number | null)[]];
  /** Seconds from which and to which it reaches, whatever points there are. */
  span: readonly [from: number, to: number];
  /** What came before was not read, or is gone: shaded. */
  unknownUntil?: number | undefined;
  /** Called with the seconds that were drawn over. */
  onZoom?: (from: number, to: number) => void;
  height?: number;
  /** Each value is a mean since the point before: drawn level over that time, not as a way from one to the next. */
  isStepped?: boolean;
  /** The axis begins at 0: what is drawn is a rate or a duration. */
  isFromZero?: boolean;
  format?: (value: number) => string;
}

export const defaultHeight = 104;
/** All charts of a page point at the same time. */
const syncKey = 'page';
const twoDaysSeconds = 172_800;
const tenMinutesSeconds = 600;
/** Beyond it the library finds no steps for its axis: such values are drawn as a part of it. */
const drawnMax = 1e15;
/** Fewer points than this are marked, each. */
const sparsePoints = 20;

function colourOf(element: Element, name: string): string {
  // A canvas does not resolve light-dark(): the colour of an element does.
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** A time below the chart: of its day, of longer spans the day, of short ones the second. */
function timeLabel(seconds: number, spanSeconds: number): string {
  const [day = '', time = ''] = exactText(seconds * 1_000).split(' ');
  if (spanSeconds > twoDaysSeconds) return day.slice(5);
  return spanSeconds < tenMinutesSeconds ? time.slice(0, 8) : time.slice(0, 5);
}

/** By what values are divided to be drawn: 1, unless they are beyond what an axis can have. */
function unitOf({ values, range = [[], []] }: Plotted): number {
  let largest = 0;
  for (const column of [values, ...range])
    for (const one of column) largest = Math.max(largest, Math.abs(one ?? 0));
  return largest > drawnMax ? 10 ** Math.floor(Math.log10(largest)) : 1;
}

/** Bounds of the axis: one value alone, or the same all the time, is in the middle. */
function bounds(min: number | null, max: number | null): [number, number] {
  if (min === null || max === null) return [0, 1];
  const pad = min === max ? Math.abs(max) / 10 || 1 : (max - min) / 10;
  return [min - pad, max + pad];
}

/** The points that no line leads to, or all of a few. */
function markedPoints(plot: uPlot, series: number): number[] {
  const column = plot.data[series] ?? [];
  const filled = [...column.keys()].filter((index) => column[index] != null);
  if (filled.length < sparsePoints) return filled;
  return filled.filter((index) => column[index - 1] == null && column[index + 1] == null);
}

/** What is pointed at: the nearest point, and the time itself. */
export interface Pointed {
  index: number;
  seconds: number;
}

export interface PlotEvents {
  /** What it is drawn of now: it is made once, and drawn again and again. */
  now(): Plotted;
  onPoint(point: Pointed | undefined): void;
}

/** Draws into an element, until it is destroyed. */
export function drawPlot(element: HTMLElement, events: PlotEvents): uPlot {
  return new uPlot(optionsOf(element, events), plottedColumns(events.now()), element);
}

function optionsOf(element: HTMLElement, events: PlotEvents): uPlot.Options {
  const { height = defaultHeight, onZoom } = events.now();
  const unknown = colourOf(element, '--hover');
  return {
    width: element.clientWidth,
    height,
    // On the right half a label of the axis, `16:36:00`, has room.
    padding: [6, 26, 0, 0],
    legend: { show: false },
    cursor: {
      drag: { x: onZoom !== undefined, y: false, setScale: false },
      points: { size: 6 },
      y: false,
      sync: {
        key: syncKey,
        scales: ['x', null],
        // The others point, and are not drawn over.
        filters: { pub: (type) => type === 'mousemove' || type === 'mouseleave' },
      },
    },
    hooks: {
      setCursor: [(plot) => events.onPoint(pointedOf(plot))],
      setSelect: [(plot) => takeZoom(plot, events.now().onZoom)],
      drawClear: [(plot) => shade(plot, events.now().unknownUntil, unknown)],
    },
    axes: axesOf(element, events),
    scales: {
      y: events.now().isFromZero
        ? { range: { min: { hard: 0, pad: 0, soft: 0, mode: 1 }, max: { pad: 0.1 } } }
        : { range: (_plot, min, max) => bounds(min, max) },
      x: { range: () => [...events.now().span] },
    },
    series: seriesOf(element, events.now()),
  };
}

function axesOf(element: HTMLElement, { now }: PlotEvents): uPlot.Axis[] {
  const axis = {
    stroke: colourOf(element, '--ink-faint'),
    grid: { stroke: colourOf(element, '--line'), width: 1 },
    ticks: { show: false },
    font: `11px ${getComputedStyle(element).fontFamily}`,
  };
  return [
    {
      ...axis,
      grid: { show: false },
      size: 22,
      space: 70,
      values: (_plot, splits) => {
        const [from, to] = now().span;
        return splits.map((one) => timeLabel(one, to - from));
      },
    },
    {
      ...axis,
      // Of all charts the same, so that their times are below each other.
      size: 72,
      space: 22,
      values: (_plot, splits) => {
        const { format = String } = now();
        const unit = unitOf(now());
        const labels = splits.map((one) => format(one * unit));
        // Of steps that are finer than the digits only the first is named.
        return labels.map((label, index) => (label === labels[index - 1] ? '' : label));
      },
    },
  ];
}

function seriesOf(element: HTMLElement, plotted: Plotted): uPlot.Series[] {
  const accent = colourOf(element, '--accent');
  const faint = { stroke: colourOf(element, '--line-strong'), width: 1, points: { show: false } };
  const { stepped } = uPlot.paths;
  return [
    {},
    // Below the line itself, which they may be the same as.
    ...(plotted.range ? [faint, faint] : []),
    {
      stroke: accent,
      width: 1.5,
      points: { show: true, size: 4, fill: accent, filter: markedPoints },
      fill: colourOf(element, '--accent-soft'),
      ...(plotted.isStepped && stepped && { paths: stepped({ align: -1, alignGaps: -1 }) }),
    },
  ];
}

/** The first and the last point are the ends of the span (`plottedColumns`). */
function pointedOf({ cursor: { idx, left = -1 }, posToVal }: uPlot): Pointed | undefined {
  return left < 0 || idx == null ? undefined : { index: idx - 1, seconds: posToVal(left, 'x') };
}

/** What was drawn over is passed on, and stays drawn over no longer. */
function takeZoom(plot: uPlot, onZoom: Plotted['onZoom']): void {
  const { left, width } = plot.select;
  if (width > 0) onZoom?.(plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x'));
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
}

/** Shades what is not known. */
function shade(plot: uPlot, until: number | undefined, colour: string): void {
  if (until === undefined) return;
  const { left, top, width, height } = plot.bbox;
  const right = Math.min(left + width, plot.valToPos(until, 'x', true));
  if (right <= left) return;
  plot.ctx.fillStyle = colour;
  plot.ctx.fillRect(left, top, right - left, height);
}

/** Columns as they are drawn: reaching to both ends, so that there is something to point at everywhere. */
export function plottedColumns(plotted: Plotted): uPlot.AlignedData {
  const { times, values, range = [], span } = plotted;
  const unit = unitOf(plotted);
  // The library draws to nowhere what has no value at all.
  if (values.every((one) => one === null)) return [[], [], ...range.map(() => [])];
  const columns = [...range, values].map((column) => [null, ...column.map((one) => one && one / unit), null]);
  return [[span[0], ...times, span[1]], ...columns] as unknown as uPlot.AlignedData;
}
