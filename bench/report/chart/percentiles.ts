import { type Markup, markup } from '../markup.ts';
import { figure, grouped } from '../wording.ts';
import { chartWidth } from './figure.ts';
import { logarithmicScale } from './scale.ts';
import type { Subjects } from './subjects.ts';

export interface PercentileRow {
  label: string;
  detail: string;
  subject: string;
  /** p50, p99 and p99.9, in milliseconds. */
  milliseconds: readonly [number, number, number];
}

const left = 450;
const right = chartWidth - 170;
const rowStep = 40;
const axisHeight = 28;
const headHeight = 22;
const names = ['p50', 'p99', 'p99.9'];

export function percentilesHeight(rows: readonly PercentileRow[]): number {
  return headHeight + rows.length * rowStep + axisHeight;
}

/** A line from p50 to p99.9 for each row, on an axis where each step is ten times as long a wait. */
export function percentiles(rows: readonly PercentileRow[], subjects: Subjects): Markup {
  const scale = logarithmicScale(
    rows.flatMap(({ milliseconds }) => milliseconds),
    left,
    right,
  );
  const bottom = percentilesHeight(rows) - axisHeight;
  const axis = scale.ticks.map(
    (
      tick,
    ) => markup`<line class="grid" x1="${scale.at(tick)}" x2="${scale.at(tick)}" y1="${headHeight}" y2="${bottom}"/>
<text class="tick" x="${scale.at(tick)}" y="${bottom + 18}" text-anchor="middle">${grouped(tick)}</text>`,
  );
  const head = names.map(
    (name, index) =>
      markup`<text class="tick" x="${right + 66 + index * 52}" y="12" text-anchor="end">${name}</text>`,
  );
  const drawn = rows.map(({ label, detail, subject, milliseconds }, index) => {
    const y = headHeight + index * rowStep + rowStep / 2;
    const [p50 = 0, p99 = 0, p999 = 0] = milliseconds.map(scale.at);
    const values = milliseconds.map(
      (value, at) =>
        markup`<text class="value" x="${right + 66 + at * 52}" y="${y + 4}" text-anchor="end">${figure(value)}</text>`,
    );
    return markup`<text x="0" y="${y - 3}">${label}</text><text class="detail" x="0" y="${y + 12}">${detail}</text>
<text class="subject" x="${left - 16}" y="${y + 4}" text-anchor="end">${subject}</text>
<g class="${subjects.classOf(subject)}"><line x1="${p50}" x2="${p999}" y1="${y}" y2="${y}"/><circle cx="${p50}" cy="${y}" r="5"/><circle class="ring" cx="${p99}" cy="${y}" r="5"/><line x1="${p999}" x2="${p999}" y1="${y - 6}" y2="${y + 6}"/></g>${values}
`;
  });
  const unit = markup`<text class="tick" x="${chartWidth}" y="${bottom + 18}" text-anchor="end">ms</text>`;
  return markup`${axis}${head}${drawn}${unit}`;
}
