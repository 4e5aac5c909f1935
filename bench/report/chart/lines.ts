import { type Markup, markup } from '../markup.ts';
import { figure, grouped } from '../wording.ts';
import { chartWidth } from './figure.ts';
import { linearScale, logarithmicScale, ordinalScale } from './scale.ts';
import type { Subjects } from './subjects.ts';

export interface Series {
  label: string;
  subject: string;
  points: readonly { x: number; y: number }[];
}

export interface Axes {
  xLabel: string;
  /** Each step ten times the last; else the values that there are, evenly spaced. */
  xIsLogarithmic: boolean;
  yUnit: string;
}

export const linesHeight = 340;

const left = 60;
const right = chartWidth - 330;
const top = 26;
const bottom = linesHeight - 46;
const labelStep = 18;

/** Lines over one condition; each is named at its end, and the names do not lie on each other. */
export function lines(series: readonly Series[], axes: Axes, subjects: Subjects): Markup {
  const points = series.flatMap(({ points }) => points);
  const xs = points.map(({ x }) => x);
  const x = axes.xIsLogarithmic ? logarithmicScale(xs, left, right) : ordinalScale(xs, left + 30, right - 30);
  const y = linearScale(Math.max(...points.map((point) => point.y)), bottom, top);
  const grid = markup`${y.ticks.map(
    (tick) => markup`<line class="grid" x1="${left}" x2="${right}" y1="${y.at(tick)}" y2="${y.at(tick)}"/>
<text class="tick" x="${left - 8}" y="${y.at(tick) + 4}" text-anchor="end">${grouped(tick)}</text>`,
  )}${x.ticks.map(
    (tick) =>
      markup`<text class="tick" x="${x.at(tick)}" y="${bottom + 18}" text-anchor="middle">${grouped(tick)}</text>`,
  )}<text class="tick" x="${left - 8}" y="12" text-anchor="end">${axes.yUnit}</text>
<text class="tick" x="${(left + right) / 2}" y="${bottom + 38}" text-anchor="middle">${axes.xLabel}</text>`;
  const ends = spread(
    series.map((one) => y.at(one.points.at(-1)?.y ?? 0)),
    labelStep,
  );
  const drawn = series.map(({ label, subject, points }, index) => {
    const last = points.at(-1) ?? { x: 0, y: 0 };
    const labelY = ends[index] ?? 0;
    const path = points.map((point) => `${x.at(point.x)},${y.at(point.y)}`).join(' ');
    const dots = points.map((point) => markup`<circle cx="${x.at(point.x)}" cy="${y.at(point.y)}" r="3.5"/>`);
    return markup`<g class="${subjects.classOf(subject)}"><polyline points="${path}"/>${dots}
<line class="leader" x1="${x.at(last.x) + 6}" y1="${y.at(last.y)}" x2="${right + 22}" y2="${labelY}"/></g>
<text x="${right + 28}" y="${labelY + 4}">${label} <tspan class="detail">${figure(last.y)} ${axes.yUnit}</tspan></text>`;
  });
  return markup`${grid}${drawn}`;
}

/** Moves positions apart, as little downwards and then upwards as it takes, to be `step` from each other. */
function spread(positions: readonly number[], step: number): number[] {
  const order = positions.map((_, index) => index).sort((a, b) => (positions[a] ?? 0) - (positions[b] ?? 0));
  const moved = [...positions];
  let lowest = Number.NEGATIVE_INFINITY;
  for (const index of order) {
    lowest = Math.max(moved[index] ?? 0, lowest + step);
    moved[index] = lowest;
  }
  let highest = bottom + step;
  for (const index of order.reverse()) {
    highest = Math.min(moved[index] ?? 0, highest - step);
    moved[index] = highest;
  }
  return moved;
}
