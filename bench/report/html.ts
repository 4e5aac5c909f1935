import type { Report, Result } from '../result.ts';
import { Subjects } from './chart/subjects.ts';
import { barFigure, percentileFigure, type Sweep, sweepFigure } from './charts.ts';
import { type Markup, markup } from './markup.ts';
import { resultsTable } from './results-table.ts';
import { style } from './style.ts';
import { table } from './table.ts';
import { conditionsText, quantities } from './wording.ts';

interface Section {
  id: string;
  title: string;
  about: string;
  content: readonly Markup[];
}

const overShards: Sweep = {
  condition: 'shards',
  label: 'shards',
  valuesMin: 3,
  alongside: [],
  isLogarithmic: false,
};
const overFleet: Sweep = {
  condition: 'devices',
  label: 'devices',
  valuesMin: 2,
  alongside: ['queuedMails', 'ratePerSecond', 'connections'],
  isLogarithmic: true,
};

/** The report as one page that loads nothing: style and charts are in it, and it needs no script. */
export function renderHtml(report: Report): string {
  const { startedAt, machine, results, skipped } = report;
  const sections = sectionsOf(report).filter(({ content }) => content.length > 0);
  const links = sections.map(({ id, title }) => markup`<a href="#${id}">${title}</a> `);
  const bodies = sections.map(
    ({ id, title, about, content }) => markup`<section><h2 id="${id}">${title}</h2>
<p class="soft">${about}</p>
${content}</section>
`,
  );
  const facts = Object.entries(machine).map(([name, value]) => markup`<dt>${name}</dt><dd>${value}</dd>`);
  const rounds = Math.max(0, ...results.map(({ rounds }) => rounds));
  const page = markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Fleetpost benchmark, ${startedAt.slice(0, 10)}</title>
${style}
</head>
<body>
<header><h1>Fleetpost benchmark</h1>
<p class="soft">${startedAt.replace('T', ' ').replace(/\.\d+Z$/, ' UTC')} · ${rounds === 1 ? 'one round' : `medians of ${rounds} rounds`} · ${results.length} results${skipped.length > 0 ? `, ${skipped.length} left out` : ''}</p>
<dl>${facts}</dl>
<nav aria-label="Sections">${links}</nav></header>
<main>${bodies}</main>
</body>
</html>
`;
  return page.text;
}

function sectionsOf({ benchmarks, results, skipped }: Report): Section[] {
  const subjects = new Subjects(results.map(({ subject }) => subject));
  const ofServer = results.filter(({ figures }) => figures.nanosecondsPerOperation === undefined);
  const ofParts = results.filter(({ figures }) => figures.nanosecondsPerOperation !== undefined);
  const closed = ofServer.filter(({ conditions }) => conditions.loop !== 'open');
  const open = ofServer.filter(({ conditions }) => conditions.loop !== 'closed');
  const each = (
    from: readonly Result[],
    draw: (of: Result[], name: string) => Markup | undefined,
  ): Markup[] =>
    benchmarks.flatMap(
      ({ name }) =>
        draw(
          from.filter(({ benchmark }) => benchmark === name),
          name,
        ) ?? [],
    );
  return [
    {
      id: 'cpu',
      title: 'CPU per request',
      about:
        'The figure that counts: user and system time of all processes and threads of the server, divided by the requests it answered. Ratios are of the same round, side by side. Less is better.',
      content: each(ofServer, (of, name) => barFigure(name, 'cpuMicrosecondsPerOperation', of, subjects)),
    },
    {
      id: 'throughput',
      title: 'Throughput',
      about:
        'Requests answered in a second, each client waiting for its answer before it asks again. The load generator runs on the same machine and takes its share of it. More is better.',
      content: each(closed, (of, name) => barFigure(name, 'operationsPerSecond', of, subjects)),
    },
    {
      id: 'latency',
      title: 'Latency',
      about:
        'At a constant rate of arrival, counted from the moment a request was due and not from when it could be sent: so a stall counts for all that it held up.',
      content: each(open, (of, name) => percentileFigure(name, of, subjects)),
    },
    {
      id: 'shards',
      title: 'Scaling over shards',
      about: 'What a request costs when the server has more worker threads, each with a shard of its own.',
      content: each(ofServer, (of, name) => sweepFigure(name, overShards, of, subjects)),
    },
    {
      id: 'fleet',
      title: 'Scaling over fleet size',
      about: 'What a request costs when there are more devices and more mail behind them.',
      content: each(ofServer, (of, name) => sweepFigure(name, overFleet, of, subjects)),
    },
    {
      id: 'footprint',
      title: 'Memory, disk and start',
      about: 'What the server takes up, and how soon it answers.',
      content: footprint(ofServer),
    },
    {
      id: 'parts',
      title: 'Single parts',
      about:
        'Functions of the server by themselves, on a hot machine: what a request is made of. Time is the median; CPU is that of all threads, the collector of garbage among them.',
      content: each(ofParts, partsTable),
    },
    {
      id: 'skipped',
      title: 'Not measured here',
      about: 'And what would help.',
      content: skippedTable(skipped),
    },
    {
      id: 'all',
      title: 'All results',
      about:
        'By benchmark, as npm run bench -- NAME runs one. The raw figures lie beside this page, as JSON.',
      content: benchmarks.flatMap(({ name, about }) => {
        const of = results.filter(({ benchmark }) => benchmark === name);
        if (of.length === 0) return [];
        return markup`<h3>${name}</h3><p>${about}</p><details><summary>${of.length} results</summary>${resultsTable(of)}</details>`;
      }),
    },
  ];
}

function footprint(results: readonly Result[]): Markup[] {
  const keys = ['bytesPerStream', 'bytesPerRecord', 'startMilliseconds'] as const;
  const rows = results.flatMap(({ workload, conditions, figures }) => {
    const values = keys.map((key) => figures[key]);
    return values.every((value) => value === undefined)
      ? []
      : [[workload, conditionsText(conditions), ...values]];
  });
  if (rows.length === 0) return [];
  return [table([{ label: 'What' }, { label: 'Conditions' }, ...keys.map((key) => quantities[key])], rows)];
}

function partsTable(results: readonly Result[]): Markup | undefined {
  if (results.length === 0) return undefined;
  const keys = ['nanosecondsPerOperation', 'cpuMicrosecondsPerOperation', 'operationsPerSecond'] as const;
  const columns = [{ label: 'Part' }, { label: 'Conditions' }, ...keys.map((key) => quantities[key])];
  const rows = results.map(({ workload, conditions, figures }) => [
    workload,
    conditionsText(conditions),
    ...keys.map((key) => figures[key]),
  ]);
  return table(columns, rows);
}

function skippedTable(skipped: Report['skipped']): Markup[] {
  if (skipped.length === 0) return [];
  const columns = [{ label: 'Benchmark' }, { label: 'Subject' }, { label: 'Why' }];
  return [
    table(
      columns,
      skipped.map(({ benchmark, subject, reason }) => [benchmark, subject, reason]),
    ),
  ];
}
