import { type Markup, markup } from '../markup.ts';
import { figure, grouped } from '../wording.ts';
import { chartWidth } from './figure.ts';
import { linearScale } from './scale.ts';
import type { Subjects } from './subjects.ts';

export interface Bar {
  subject: string;
  value: number;
  /** Text after the value: '0.97 × nginx'. */
  note?: string | undefined;
}

/** Bars that are compared with each other. */
export interface BarGroup {
  label: string;
  /** Under the label, in smaller letters. */
  detail: string;
  bars: readonly Bar[];
}

const labelWidth = 300;
const subjectWidth = 150;
const valueWidth = 170;
const barHeight = 14;
const barStep = 20;
const groupGap = 16;
const axisHeight = 28;
const lineHeight = 16;

function heightOf({ bars, detail }: BarGroup): number {
  return Math.max(bars.length * barStep, detail === '' ? barStep : 2 * lineHeight) + groupGap;
}

export function barsHeight(groups: readonly BarGroup[]): number {
  return groups.reduce((sum, group) => sum + heightOf(group), 0) + axisHeight;
}

/** Horizontal bars from 0, grouped; each with its subject before it and its value behind it. */
export function bars(groups: readonly BarGroup[], unit: string, subjects: Subjects): Markup {
  const values = groups.flatMap(({ bars }) => bars.map(({ value }) => value));
  const left = labelWidth + subjectWidth;
  const scale = linearScale(Math.max(...values), left, chartWidth - valueWidth);
  const bottom = barsHeight(groups) - axisHeight;
  const axis = scale.ticks.map(
    (tick) => markup`<line class="grid" x1="${scale.at(tick)}" x2="${scale.at(tick)}" y1="0" y2="${bottom}"/>
<text class="tick" x="${scale.at(tick)}" y="${bottom + 18}" text-anchor="middle">${grouped(tick)}</text>`,
  );
  let top = groupGap / 2;
  const drawn = groups.map((group) => {
    const rows = group.bars.map((bar, index) =>
      drawBar(bar, top + index * barStep, left, scale.at, subjects),
    );
    const label = markup`<text x="0" y="${top + 12}">${group.label}</text>
<text class="detail" x="0" y="${top + 12 + lineHeight}">${group.detail}</text>`;
    top += heightOf(group);
    return markup`${label}${rows}`;
  });
  const unitText = markup`<text class="tick" x="${chartWidth}" y="${bottom + 18}" text-anchor="end">${unit}</text>`;
  return markup`${axis}${unitText}${drawn}`;
}

function drawBar(
  { subject, value, note }: Bar,
  y: number,
  left: number,
  at: (value: number) => number,
  subjects: Subjects,
): Markup {
  const end = at(value);
  const middle = y + 11;
  return markup`<text class="subject" x="${left - 8}" y="${middle}" text-anchor="end">${subject}</text>
<rect class="${subjects.classOf(subject)}" x="${left}" y="${y}" width="${Math.max(end - left, 1)}" height="${barHeight}"/>
<text class="value" x="${end + 6}" y="${middle}">${figure(value)}${note ? markup` <tspan class="detail">${note}</tspan>` : undefined}</text>
`;
}
